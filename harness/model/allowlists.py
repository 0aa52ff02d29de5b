"""Which nodes each persona may be sent to: what comes with the harness, and how a setting narrows it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

_WORK: Final = ("task_executor", "spawn_subAgent", "subAgent_executor", "subAGENT_finalizer")
DEFAULT: Final[Mapping[str, tuple[str, ...]]] = {
    "AGENT_PERFORM_PLANNING": ("initial_planner", "classifier", "complexity_analyzer"),
    "AGENT_PARENT": ("task_updater", "task_planner", "finalizer"),
    "AGENT_PERFORM_ERROR_FALLBACK": ("error_fallback", "task_executor"),
    "AGENT_PERFORM_TASK": ("task_executor",),
    "AGENT_SUBAGENT": _WORK,
    "AGENT_RECOVERY": _WORK,
}


def parse(value: Any) -> dict[str, tuple[str, ...]]:
    """Nodes by persona, as a settings file gives them; raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError('must be a table, such as [allowlists] AGENT_RECOVERY = ["task_executor"]')  # noqa: TRY004 - one error for every wrong value
    for persona, nodes in value.items():
        if persona not in DEFAULT:
            raise ValueError(f"{persona!r:.80} is no persona; known: {', '.join(DEFAULT)}")
        if not isinstance(nodes, list | tuple) or not all(isinstance(node, str) for node in nodes):
            raise ValueError(f"{persona} must be a list of nodes")
        wrong = [node for node in nodes if node not in DEFAULT[persona]]
        if wrong:
            raise ValueError(f"{persona} is never sent to {wrong[0]!r:.80}; known: {', '.join(DEFAULT[persona])}")
    return {persona: tuple(nodes) for persona, nodes in value.items()}


def of(persona: str, narrowed: Mapping[str, Collection[str]]) -> Collection[str] | None:
    """The nodes that a persona may be sent to; None for a role that the table does not know."""
    return narrowed.get(persona, DEFAULT.get(persona))
