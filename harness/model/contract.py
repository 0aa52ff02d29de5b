"""The delegation contract (seed 003, section 2): what a sub-agent is asked and allowed to do."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import ContractViolation
from harness.model import candidates, limits
from harness.model.plan import Check, Command, Criterion, Plan, Step

DEFAULT_TOOLS = (
    *("read_file", "list_dir", "glob", "grep", "git_diff"),
    *("write_file", "edit_file", "delete_file", "move_file", "apply_patch", "run"),
)
NESTED = "steps"
SUMMARY_CHARS = 500
REPORT_PATTERN = ".orchestrix/step-<idx>-result.md"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Parent(_Part):
    run_id: str
    step_idx: int
    task_prompt: str
    goal_summary: str


class StepText(_Part):
    title: str
    description: str
    success_criteria: tuple[str, ...] = ()


class Permissions(_Part):
    allowed_tools: tuple[str, ...]
    can_spawn_children: bool = False
    max_delegation_depth: int = 0


class Execution(_Part):
    attempt_timeout_ms: int
    max_retries: int
    close_on_completion: bool = True


class Outputs(_Part):
    report_format: Literal["markdown"] = "markdown"
    report_path_pattern: str = REPORT_PATTERN


class Ownership(_Part):
    """The globs that the step may change; None owns everything."""

    paths: tuple[str, ...] | None = None
    exceptions_allowed: bool = False


class ContractCheck(_Part):
    command: Command
    may_fail_on_base: bool = False
    criterion: str | None = None


class ContractAction(_Part):
    tool: str
    arguments: dict[str, Any]


class Work(_Part):
    """How the step is done: which agent, with which input."""

    agent: str
    candidates: tuple[str, ...] = ()
    budget_usd: float | None = None
    command: tuple[str, ...] | None = None
    actions: tuple[ContractAction, ...] | None = None
    env: dict[str, str] = {}
    setup: tuple[Command, ...] = ()
    allow_empty: bool = False
    decompose: Literal["never", "auto", "always"] = "auto"
    subplan: dict[str, Any] | None = None
    subplan_retries: int | None = None  # of its steps, where the step itself says none; else `max_retries` binds them


class Caps(_Part):
    """What a persona may use at most: `tools` None is all of the contract's, the rest never exceeds the contract's."""

    tools: tuple[str, ...] | None = None
    timeout_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_retries: Annotated[int, Field(ge=0)] | None = None
    may_delegate: bool = True


class Limits(_Part):
    inactivity_timeout_ms: int | None = None
    check_timeout_ms: int = limits.CHECK_TIMEOUT_MS
    setup_timeout_ms: int = limits.SETUP_TIMEOUT_MS
    files: int = limits.STEP_FILES
    bytes: int = limits.STEP_BYTES
    processes: int = limits.STEP_PROCESSES
    memory_bytes: int = limits.STEP_MEMORY_BYTES


class Contract(_Part):
    """Immutable once persisted in `sub_agents.context_json`."""

    parent: Parent
    step: StepText
    permissions: Permissions
    execution: Execution
    outputs: Outputs = Outputs.model_construct()  # without a validator of its own, as those below
    ownership: Ownership = Ownership.model_construct()
    checks: tuple[ContractCheck, ...] = ()
    sandbox: Literal["auto", "bwrap", "none"] = "auto"
    limits: Limits = Limits.model_construct()
    persona: str | None = None
    caps: dict[str, Caps] = {}
    work: Work

    @property
    def report_path(self) -> str:
        """Where in the workspace the report stands."""
        return self.outputs.report_path_pattern.replace("<idx>", str(self.parent.step_idx))

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> Contract:
        """The contract as persisted; a missing or unreadable one refuses."""
        if not text:
            raise ContractViolation("the sub-agent has no contract", hint="nothing runs without one")
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ContractViolation(
                f"the contract is unreadable: {error.errors()[0]['msg']}", hint="run `orchestrix audit`"
            ) from error


def _criteria(step: Step) -> list[str]:
    return [item if isinstance(item, str) else item.text for item in step.success_criteria or []]


def _checks(step: Step) -> tuple[dict[str, Any], ...]:
    plain = [
        {"command": item.run, "may_fail_on_base": item.may_fail_on_base}
        if isinstance(item, Check)
        else {"command": item}
        for item in step.checks or []
    ]
    shown = [
        {"command": item.check, "criterion": item.text}
        for item in step.success_criteria or []
        if isinstance(item, Criterion)
    ]
    return (*plain, *shown)


def with_defaults(plan: Plan, step: Step) -> Step:
    """The step with the plan's defaults filled in; `env` is merged, everything else is replaced."""
    filled: dict[str, Any] = {}
    for name in type(plan.defaults).model_fields:
        default, own = getattr(plan.defaults, name), getattr(step, name)
        if name == "env" and default is not None:
            filled[name] = default | (own or {})
        elif own is None and default is not None:
            filled[name] = default
    return step.model_copy(update=filled)


def agent_of(step: Step) -> str:
    """The agent that a step asks for; `actions` and `command` speak for themselves."""
    if step.actions is not None:
        return "actions"
    if step.command is not None:
        return "command"
    if step.steps is not None:
        return NESTED
    return step.agent or ""


def _setup(step: Step) -> tuple[Command, ...]:
    if step.setup is None:
        return ()
    return (step.setup,) if isinstance(step.setup, str) else tuple(step.setup)


def _actions(step: Step) -> tuple[dict[str, Any], ...] | None:
    if step.actions is None:
        return None
    return tuple({"tool": item.tool, "arguments": item.arguments} for item in step.actions)


def from_plan(plan: Plan, idx: int, run_id: str, *, sandbox: Literal["auto", "bwrap", "none"] = "auto") -> Contract:
    """The contract of step `idx`; checked in one go, because every part that is made alone needs a validator of its own."""
    step = with_defaults(plan, plan.steps[idx])
    return Contract.model_validate(
        {
            "parent": {
                "run_id": run_id,
                "step_idx": idx,
                "task_prompt": plan.goal,
                "goal_summary": plan.goal.strip()[:SUMMARY_CHARS],
            },
            "step": {
                "title": step.title,
                "description": step.description,
                "success_criteria": tuple(_criteria(step)),
            },
            "permissions": {
                "allowed_tools": DEFAULT_TOOLS if step.allowed_tools is None else tuple(step.allowed_tools),
                "can_spawn_children": bool(step.can_spawn_children),
                "max_delegation_depth": step.max_delegation_depth or 0,
            },
            "execution": {
                "attempt_timeout_ms": step.timeout or limits.ATTEMPT_TIMEOUT_MS,
                "max_retries": limits.MAX_RETRIES if step.retries is None else step.retries,
            },
            "ownership": {
                "paths": None if step.owns is None else tuple(step.owns),
                "exceptions_allowed": plan.ownership_exceptions,
            },
            "checks": _checks(step),
            "sandbox": sandbox,
            "limits": Limits(inactivity_timeout_ms=step.inactivity_timeout),
            "work": _work(step, candidates.of(plan, plan.steps[idx])),
        }
    )


def _work(step: Step, racing: tuple[str, ...]) -> dict[str, Any]:
    return {
        "agent": racing[0] if racing else agent_of(step),
        "candidates": racing,
        "budget_usd": step.budget if racing else None,
        "command": None if step.command is None else tuple(step.command),
        "actions": _actions(step),
        "env": step.env or {},
        "setup": _setup(step),
        "allow_empty": bool(step.allow_empty),
        "decompose": step.decompose or "auto",
    }
