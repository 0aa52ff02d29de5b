"""Runs inside runs: names by path, the plan of a decomposed step, and contracts that only get narrower. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from harness.model import contract as contracts
from harness.model import limits, within
from harness.model.contract import Contract, Limits, Outputs, Ownership, Permissions, Work
from harness.model.ids import RunId, TaskId
from harness.model.late import dataclass
from harness.model.plan import Plan, Step

if TYPE_CHECKING:
    from harness.model.state import RunState

# What a parent is judged by is its own; how its children work is inherited unless they say otherwise.
Sandbox = Literal["auto", "bwrap", "none"]
_INHERITED = ("agent", "allowed_tools", "timeout", "inactivity_timeout", "retries", "env", "setup")


@dataclass(frozen=True, slots=True)
class Nest:
    """Where a nested run stands: under which task, and within which contract."""

    parent_run: RunId
    parent_task: TaskId
    within: Contract

    @classmethod
    def of(cls, state: RunState) -> Nest | None:
        """Of a run, as its log says; None for a run that a person started."""
        if state.parent_run is None or state.parent_task is None:
            return None
        return cls(RunId(state.parent_run), TaskId(state.parent_task), Contract.model_validate(state.within))


def task_id(parent: TaskId | None, idx: int) -> TaskId:
    """Steps of a run count from 0, those below a step from 1: `2`, `2.1`."""
    return TaskId(str(idx) if parent is None else f"{parent}.{idx + 1}")


def run_id(parent: RunId, task: TaskId, number: int) -> RunId:
    """The same for the same task and spawn, so that a resume finds it."""
    again = "" if number == 1 else f"n{number}"
    return RunId(f"{parent}-s{task.order[-1]}{again}")


def plan(outer: Plan, step: Step) -> dict[str, Any]:
    """The data of the plan that a step's own `steps` are."""
    data = outer.model_dump(mode="json", by_alias=True, exclude_unset=True)
    own = step.model_dump(mode="json", exclude_unset=True)
    defaults = data.get("defaults", {}) | {name: own[name] for name in _INHERITED if name in own}
    kept: dict[str, Any] = {
        name: data[name] for name in ("on_failure", "overlap", "ownership_exceptions") if name in data
    }
    goal = "\n\n".join(part for part in (step.title, step.description) if part.strip())
    return {"version": 1, "goal": goal, "defaults": defaults, **kept, "steps": own["steps"]}


def contract(outer: Plan, idx: int, run: str, sandbox: Sandbox, nest: Nest | None = None) -> Contract:
    """The contract of a step, with the plan of its own steps if it has some, and within its parent's if it has one."""
    made = contracts.from_plan(outer, idx, run, sandbox=sandbox)
    if outer.steps[idx].steps is not None:
        made = _of_parent(outer, idx, made)
    if nest is not None:
        outputs = Outputs(report_path_pattern=f".orchestrix/step-{task_id(nest.parent_task, idx)}-result.md")
        parent = made.parent.model_copy(update=_told_by(nest.within))
        made = narrowed(made, nest.within).model_copy(update={"outputs": outputs, "parent": parent})
    return made


def _told_by(parent: Contract) -> dict[str, str]:
    """What a child knows of its parent: the prompt that the run began with, and the step that it is a part of."""
    step = "\n\n".join(part for part in (parent.step.title, parent.step.description) if part.strip())
    return {"task_prompt": parent.parent.task_prompt, "goal_summary": step.strip()[: contracts.SUMMARY_CHARS]}


def _of_parent(outer: Plan, idx: int, made: Contract) -> Contract:
    """What the author gave to the children, the parent has; what is said of the parent itself, binds them."""
    step = contracts.with_defaults(outer, outer.steps[idx])
    data = plan(outer, outer.steps[idx])
    inner = Plan.model_validate(data)
    children = [contract(inner, place, made.parent.run_id, made.sandbox) for place in range(len(inner.steps))]
    tools = dict.fromkeys(tool for child in children for tool in child.permissions.allowed_tools)
    retries = None if step.retries is not None else max(map(_retries_below, children))
    deepest = 1 + max(child.permissions.max_delegation_depth for child in children)
    return made.model_copy(
        update={
            "work": made.work.model_copy(update={"subplan": data, "subplan_retries": retries}),
            "permissions": Permissions(
                allowed_tools=made.permissions.allowed_tools if step.allowed_tools is not None else tuple(tools),
                can_spawn_children=True,
                max_delegation_depth=max(made.permissions.max_delegation_depth, deepest),
            ),
            "execution": made.execution.model_copy(
                update={"attempt_timeout_ms": outer.steps[idx].timeout or limits.NESTED_TIMEOUT_MS}
            ),
        }
    )


def narrowed(child: Contract, parent: Contract) -> Contract:
    """The child's contract, in nothing wider than its parent's; ownership that may reach beyond it is left out."""
    tools = tuple(tool for tool in child.permissions.allowed_tools if tool in parent.permissions.allowed_tools)
    depth = min(child.permissions.max_delegation_depth, max(0, parent.permissions.max_delegation_depth - 1))
    may_spawn = child.permissions.can_spawn_children and parent.permissions.can_spawn_children and depth > 0
    return child.model_copy(
        update={
            "permissions": child.permissions.model_copy(
                update={"allowed_tools": tools, "max_delegation_depth": depth, "can_spawn_children": may_spawn}
            ),
            "execution": child.execution.model_copy(
                update={
                    "attempt_timeout_ms": min(child.execution.attempt_timeout_ms, parent.execution.attempt_timeout_ms),
                    "max_retries": min(child.execution.max_retries, _retries_below(parent)),
                }
            ),
            "work": _bound_below(child.work, _retries_below(parent)),
            "ownership": _owned(child.ownership, parent.ownership),
            "limits": _least(child.limits, parent.limits),
            "sandbox": parent.sandbox,
        }
    )


def _retries_below(parent: Contract) -> int:
    """How often a step of this one may be tried again."""
    below = parent.work.subplan_retries
    return parent.execution.max_retries if below is None else below


def _bound_below(work: Work, retries: int) -> Work:
    if work.subplan_retries is None:
        return work
    return work.model_copy(update={"subplan_retries": min(work.subplan_retries, retries)})


def _owned(child: Ownership, parent: Ownership) -> Ownership:
    paths = child.paths if child.paths is not None else parent.paths
    if paths is not None:
        outside = set(within.outside(paths, parent.paths))
        paths = tuple(path for path in paths if path not in outside)
    return Ownership(
        paths=paths, exceptions_allowed=child.exceptions_allowed and parent.exceptions_allowed and parent.paths is None
    )


def _least(child: Limits, parent: Limits) -> Limits:
    """The smaller of each; where one has no limit (None, or 0 bytes of memory), the other's."""
    least = {}
    for name in Limits.model_fields:
        set_ = [value for value in (getattr(child, name), getattr(parent, name)) if value]
        least[name] = min(set_) if set_ else getattr(child, name)
    return Limits(**least)


def remaining(budget: Mapping[str, Any], spent: Any) -> dict[str, Any]:
    """What a nested run may use: what its parent has left."""
    return {name: max(0, limit - getattr(spent, name)) for name, limit in budget.items()}
