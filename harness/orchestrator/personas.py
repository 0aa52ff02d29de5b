"""The roles in which nodes act, and what each may use at most; a routing decision names one."""

from __future__ import annotations

from functools import cache
from typing import Final

from harness.model.late import dataclass

PERFORM_TASK: Final = "AGENT_PERFORM_TASK"
PLANNER: Final = "AGENT_PERFORM_PLANNING"
ERROR_FALLBACK: Final = "AGENT_PERFORM_ERROR_FALLBACK"
PARENT: Final = "AGENT_PARENT"
SUBAGENT: Final = "AGENT_SUBAGENT"
RECOVERY: Final = "AGENT_RECOVERY"


@dataclass(frozen=True, slots=True)
class Caps:
    """What a persona may use: `tools` None is all of the contract's; times and retries never exceed the contract's."""

    tools: tuple[str, ...] | None
    timeout_share: float
    max_retries: int | None
    may_delegate: bool


@cache
def caps(persona: str) -> Caps:
    """From `personas.toml`; a persona that is not listed has no caps of its own."""
    import tomllib  # noqa: PLC0415 - only nested runs have caps
    from importlib import resources  # noqa: PLC0415 - as above

    table = tomllib.loads(resources.files("harness.orchestrator").joinpath("personas.toml").read_text(encoding="utf-8"))
    given = table.get(persona, {})
    tools = given.get("tools")
    return Caps(
        tools=None if tools is None else tuple(tools),
        timeout_share=given.get("timeout_share", 1.0),
        max_retries=given.get("max_retries"),
        may_delegate=given.get("may_delegate", True),
    )
