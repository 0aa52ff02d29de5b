"""The question that a supervisor puts to a model. Pure; long values are cut before they cost tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.supervisor.choice import Rule
from harness.supervisor.contracts import NodeContract
from harness.supervisor.decisions import DONE
from harness.supervisor.slices import State

_INLINE_DATA = ("data:image/", "data:application/", "data:audio/", "data:video/")


def routing_prompt(
    supervisor: str,
    actions: Sequence[tuple[str, str]],
    rules: Sequence[Rule],
    context: str,
) -> str:
    """The whole prompt: the actions with their descriptions, what the rules suggest, and the state."""
    suggested = "\n".join(f"- {rule.node} (priority {rule.priority}; {rule.condition})" for rule in rules)
    listed = "\n".join(f"- {name}: {text}" for name, text in actions)
    return (
        f"You route work for the supervisor {supervisor!r}. Choose exactly one action by its name.\n\n"
        f"Actions:\n{listed}\n- {DONE}: nothing is left to do here\n\n"
        f"Matching rules, best first (prefer one of these):\n{suggested or '- none'}\n\n"
        f"State:\n{context}\n"
    )


def action_text(contract: NodeContract) -> str:
    """A node's description with its hints."""
    hints = "; ".join(contract.get_llm_hints())
    return f"{contract.description} ({hints})" if hints else contract.description


def state_text(state: State, slices: Sequence[str], limit: int) -> str:
    """The named slices as JSON lines, every string cut to `limit` characters, inline binaries left out."""
    lines = [f"{name}: {json.dumps(shortened(state[name], limit), default=str)}" for name in slices if name in state]
    return "\n".join(lines) or "empty"


def shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        if value.startswith(_INLINE_DATA):
            return f"<{value[5:].split(';', 1)[0]}, {len(value)} characters>"
        return value if len(value) <= limit else f"{value[:limit]}… ({len(value)} characters)"
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if isinstance(value, dict):
        return {str(key): shortened(item, limit) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(item, limit) for item in value]
    return value
