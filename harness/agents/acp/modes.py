"""In which of its modes an agent asks before it acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import ContractViolation

if TYPE_CHECKING:
    from acp.schema import SessionModeState

# What agents call the mode in which they ask, the most careful first.
_ASKING = ("read-only", "ask", "default", "manual")


def chosen(wanted: str | None, modes: SessionModeState | None) -> str | None:
    """The mode to work in; None for an agent that has none. Raises ContractViolation rather than guess."""
    offered = [] if modes is None else [mode.id for mode in modes.available_modes]
    if not offered and wanted is None:
        return None
    found = [wanted] if wanted is not None else [mode for mode in _ASKING if mode in offered]
    if found and found[0] in offered:
        return found[0]
    names = ", ".join(offered)[:500] or "none"
    if wanted is not None:
        raise ContractViolation(f"the agent has no mode {wanted!r:.80}", hint=f"its modes are: {names}")
    raise ContractViolation(
        "none of the agent's modes is known to ask before it acts",
        hint=f"name the one that does as `mode` of the agent in the settings; its modes are: {names}",
    )
