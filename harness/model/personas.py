"""The roles in which steps are done, and what each may use at most: written into contracts, and never wider than them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from harness.model.contract import Caps, Contract

PERFORM_TASK: Final = "AGENT_PERFORM_TASK"
PLANNER: Final = "AGENT_PERFORM_PLANNING"
ERROR_FALLBACK: Final = "AGENT_PERFORM_ERROR_FALLBACK"
PARENT: Final = "AGENT_PARENT"
SUBAGENT: Final = "AGENT_SUBAGENT"
RECOVERY: Final = "AGENT_RECOVERY"

# Those that work on steps: a planner or a parent uses no tool of a step.
WORKING: Final = (PERFORM_TASK, ERROR_FALLBACK, SUBAGENT, RECOVERY)


def parse(value: Any) -> dict[str, dict[str, Any]]:
    """Caps by persona, as a settings file gives them; raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError("must be tables, such as [personas.AGENT_RECOVERY]")  # noqa: TRY004 - one error for every wrong value
    found: dict[str, dict[str, Any]] = {}
    for name, given in value.items():
        if name not in WORKING:
            raise ValueError(f"{name!r:.80} is no persona with caps; known: {', '.join(WORKING)}")
        try:
            caps = Caps.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{name}.{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        found[name] = caps.model_dump(mode="json", exclude_unset=True)
    return found


def enrolled(contract: Contract, persona: str, caps: Mapping[str, Caps]) -> Contract:
    """The contract of a step that is done in this role, with the caps of the roles that it may come to."""
    named = contract.model_copy(update={"persona": persona, "caps": dict(caps)})
    return capped(named, caps.get(persona))


def in_fallback(contract: Contract) -> Contract:
    """What binds an attempt after a failed one."""
    return capped(contract, contract.caps.get(ERROR_FALLBACK))


def _retries_below(contract: Contract, caps: Caps) -> dict[str, int]:
    below = contract.work.subplan_retries
    return {} if below is None or caps.max_retries is None else {"subplan_retries": min(below, caps.max_retries)}


def capped(contract: Contract, caps: Caps | None) -> Contract:
    """The contract with no more tools, time, retries and delegation than the caps leave; in nothing wider than before."""
    if caps is None:
        return contract
    permissions, execution = contract.permissions, contract.execution
    tools = permissions.allowed_tools
    retries = execution.max_retries if caps.max_retries is None else min(execution.max_retries, caps.max_retries)
    return contract.model_copy(
        update={
            "permissions": permissions.model_copy(
                update={
                    "allowed_tools": tools if caps.tools is None else tuple(one for one in tools if one in caps.tools),
                    "can_spawn_children": permissions.can_spawn_children and caps.may_delegate,
                    "max_delegation_depth": permissions.max_delegation_depth if caps.may_delegate else 0,
                }
            ),
            "execution": execution.model_copy(
                update={
                    "attempt_timeout_ms": max(1, int(execution.attempt_timeout_ms * caps.timeout_share)),
                    "max_retries": retries,
                }
            ),
            "work": contract.work.model_copy(update=_retries_below(contract, caps)),
        }
    )
