"""The final answer from all reports: a model's words, a smaller question, or the facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from harness.errors import ModelFailed
from harness.model import limits
from harness.model.late import dataclass
from harness.orchestrator.thinking import results
from harness.orchestrator.thinking.results import Result
from harness.ports import Usage

if TYPE_CHECKING:
    from harness.orchestrator.thinking.asking import Asking

_SHOWN_PATHS = 20


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The answer and how it came about; `problems` says why a better source did not serve."""

    text: str
    source: Literal["model", "smaller", "facts"]
    problems: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


async def synthesise(asking: Asking | None, goal: str, ended: Sequence[Result]) -> Synthesis:
    """Always an answer: one step needs no model to sum it up, and a model that fails twice is not waited for."""
    if asking is None or len(ended) < 2:  # noqa: PLR2004 - one report is its own summary
        return Synthesis(facts(ended), "facts")
    from harness.orchestrator.thinking import prompts  # noqa: PLC0415 - a run without a model pays nothing
    from harness.orchestrator.thinking.answers import SynthesisAnswer  # noqa: PLC0415 - as above

    problems: list[str] = []
    for source, budget in (("model", limits.SYNTHESIS_TOKENS), ("smaller", limits.SYNTHESIS_REDUCED_TOKENS)):
        quoted = {"goal": goal, "results": results.told(ended, budget)}
        question = prompts.render("synthesis", {"words": limits.SYNTHESIS_WORDS}, quoted)
        if problems and asking.hears is not None:
            asking.hears("\n\n")  # what was heard so far is not the answer
        try:
            given = await asking.ask(question, SynthesisAnswer, aloud=True)
        except ModelFailed as error:
            problems.append(f"{error.kind.value}: {error.message}")
            continue
        answer = f"{given.value.answer.strip()}\n\n{_outcome(ended)}"
        return Synthesis(answer, "model" if source == "model" else "smaller", tuple(problems), given.usage)
    return Synthesis(facts(ended), "facts", tuple(problems))


def facts(ended: Sequence[Result]) -> str:
    """The outcome, each step's line and the files that it changed; nothing that an agent claimed."""
    lines = [_outcome(ended), ""]
    for result in ended:
        lines.append(f"- {result.headline}")
        lines += [f"  - `{path}`" for path in result.changed_paths[:_SHOWN_PATHS]]
        hidden = len(result.changed_paths) - _SHOWN_PATHS
        if hidden > 0:
            lines.append(f"  - and {hidden} more files")
    return "\n".join(lines)


def _outcome(ended: Sequence[Result]) -> str:
    """Also below a model's words: they cannot claim another outcome than the one that was verified."""
    done = sum(result.completed for result in ended)
    return f"{done} of {len(ended)} steps completed."
