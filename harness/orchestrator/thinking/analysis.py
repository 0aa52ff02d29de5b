"""Does one agent do a step, or is it split first? Rules decide what they can; a model is asked only about the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from harness.errors import ModelFailed
from harness.model import limits
from harness.model.contract import Contract
from harness.model.globs import Ownership
from harness.model.late import dataclass
from harness.ports import Usage
from harness.tools.permission import VIRTUAL, allows

if TYPE_CHECKING:
    from harness.orchestrator.thinking.answers import AnalysisAnswer
    from harness.orchestrator.thinking.asking import Asking

Decompose = Literal["never", "auto", "always"]


class Decision(StrEnum):
    """What becomes of a step."""

    EXECUTE = "execute"
    SPAWN = "spawn"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A decision with its reasons; `recommended_tools` are always among those that the contract allows."""

    decision: Decision
    reasons: tuple[str, ...]
    recommended_tools: tuple[str, ...]
    usage: Usage = field(default_factory=Usage)


def by_rules(contract: Contract, decompose: Decompose, paths: Sequence[str]) -> Analysis | None:
    """The decision where no model is needed; `paths` are the repository's files; None when a model should be asked."""
    permissions = contract.permissions
    if decompose == "never":
        return _rule(contract, Decision.EXECUTE, "the plan says that it is never split")
    if not permissions.can_spawn_children or permissions.max_delegation_depth < 1:
        return _rule(contract, Decision.EXECUTE, "its contract does not let it spawn children")
    if decompose == "always":
        return _rule(contract, Decision.SPAWN, "the plan says that it is always split")
    large = findings(contract, paths)
    return None if large else _rule(contract, Decision.EXECUTE, "it is small in scope, criteria and files")


def findings(contract: Contract, paths: Sequence[str]) -> list[str]:
    """What makes a step look large, measured."""
    step = contract.step
    chars = len(step.title) + len(step.description)
    boundary = Ownership(contract.ownership.paths)
    files = sum(boundary.covers(path) for path in paths)
    found = []
    if contract.ownership.paths is None and paths:
        found.append("it may change every file")
    if len(step.success_criteria) > limits.SIMPLE_CRITERIA:
        found.append(f"it has {len(step.success_criteria)} success criteria")
    if files > limits.SIMPLE_FILES:
        found.append(f"its paths hold {files} files")
    if chars > limits.SIMPLE_CHARS:
        found.append(f"its description has {chars} characters")
    return found


async def analyse(
    asking: Asking | None, contract: Contract, decompose: Decompose, *, paths: Sequence[str], depth: int, max_depth: int
) -> Analysis:
    """Rules first, then the model; without an answer the step is executed as it is, which needs no further trust."""
    known = by_rules(contract, decompose, paths)
    if known is not None:
        return known
    large = findings(contract, paths)
    if asking is None:
        return _rule(contract, Decision.EXECUTE, *large, "there is no model to ask whether to split it")
    from harness.orchestrator.thinking import prompts  # noqa: PLC0415 - a run without a model pays nothing
    from harness.orchestrator.thinking.answers import AnalysisAnswer  # noqa: PLC0415 - as above

    step = contract.step
    quoted = {
        "goal": contract.parent.task_prompt,
        "step": "\n\n".join(part for part in (step.title, step.description, *step.success_criteria) if part.strip()),
        "findings": "\n".join(large),
        "tools": "\n".join(offered(contract)),
    }
    question = prompts.render("analysis", {"depth": depth, "max_depth": max_depth}, quoted)
    try:
        given = await asking.ask(question, AnalysisAnswer)
    except ModelFailed as error:
        return _rule(contract, Decision.EXECUTE, *large, f"the model could not be asked: {error.kind.value}")
    return _answered(contract, given.value, given.usage)


def _answered(contract: Contract, answer: AnalysisAnswer, usage: Usage) -> Analysis:
    wanted = tuple(tool for tool in offered(contract) if tool in answer.recommended_tools)
    return Analysis(
        Decision(answer.decision), tuple(answer.reasons), wanted or contract.permissions.allowed_tools, usage
    )


def offered(contract: Contract) -> tuple[str, ...]:
    """What can be recommended: the contract's tools, and the virtual ones that it does not forbid."""
    allowed = contract.permissions.allowed_tools
    return (*allowed, *(tool for tool in VIRTUAL if tool not in allowed and allows(contract, tool)))


def _rule(contract: Contract, decision: Decision, *reasons: str) -> Analysis:
    return Analysis(decision, reasons, contract.permissions.allowed_tools)
