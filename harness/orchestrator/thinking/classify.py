"""Is more work needed? Facts answer that when everything was completed; a model is asked only otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from harness.errors import ModelFailed
from harness.model import limits
from harness.model.late import dataclass
from harness.orchestrator.thinking import results
from harness.orchestrator.thinking.results import Result
from harness.ports import Usage

if TYPE_CHECKING:
    from harness.orchestrator.thinking.asking import Asking

_PARTIAL = "it covers only the first part of the goal"
_WHOLE = "it covers the whole goal"


@dataclass(frozen=True, slots=True)
class Classification:
    """Whether to plan again, and for what: `missing` is the context of the next plan."""

    more_work: bool
    reasons: tuple[str, ...]
    missing: str = ""
    usage: Usage = field(default_factory=Usage)


async def classify(
    asking: Asking | None, goal: str, ended: Sequence[Result], *, partial: bool, rounds_left: int
) -> Classification:
    """The end of a round; without a further round or an answer nothing more is planned."""
    failed = [result for result in ended if not result.completed]
    if not failed and not partial:
        return _settled("every step was completed and the plan covered the whole goal")
    if rounds_left < 1:
        return _settled("no round of planning is left")
    if asking is None:
        return _settled("there is no model to ask")
    from harness.orchestrator.thinking import prompts  # noqa: PLC0415 - a run without a model pays nothing
    from harness.orchestrator.thinking.answers import ClassificationAnswer  # noqa: PLC0415 - as above

    quoted = {
        "goal": goal,
        "results": results.told(ended, limits.SYNTHESIS_TOKENS),
        "coverage": _PARTIAL if partial else _WHOLE,
    }
    try:
        given = await asking.ask(prompts.render("classification", {}, quoted), ClassificationAnswer)
    except ModelFailed as error:
        return _settled(f"the model could not be asked: {error.kind.value}")
    answer = given.value
    more = answer.more_work and bool(answer.missing.strip())
    return Classification(more, tuple(answer.reasons), answer.missing if more else "", given.usage)


def _settled(reason: str) -> Classification:
    return Classification(more_work=False, reasons=(reason,))
