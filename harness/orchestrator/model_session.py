"""A run's session with its model: what was answered before stands in the log and is not asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.engine.context import Context
from harness.model.events import Envelope, RunWaiting
from harness.model.ids import CommitId, TaskId
from harness.ports import Vcs

if TYPE_CHECKING:
    from harness.orchestrator.thinking.asking import Asking


def open_session(ctx: Context, task: TaskId | None) -> Asking | None:
    """A model with the memory of this run; None where no model is configured."""
    model = ctx.parts.model()
    if model is None:
        return None
    from harness.orchestrator.thinking import asking as questions  # noqa: PLC0415 - a run without a model pays nothing

    return questions.Asking(
        model,
        ctx.journal.append,
        questions.remembered(_heard(ctx)),
        task,
        timeout_ms=ctx.parts.model_timeout_ms,
        hears=ctx.parts.hears,
    )


def _heard(ctx: Context) -> list[Envelope]:
    """What was said since planning last came to nothing: those answers would only lead there again."""
    heard: list[Envelope] = []
    for envelope in ctx.parts.store.events(ctx.run_id):
        if envelope.type == RunWaiting.type and envelope.payload["cause"] == "planning":
            heard.clear()
        heard.append(envelope)
    return heard


def survey(vcs: Vcs, commit: CommitId) -> str:
    """The map of the repository at a commit: never of files that a run would not see."""
    from harness.orchestrator.thinking import repository_map  # noqa: PLC0415 - as above

    instructions = vcs.content(commit, repository_map.INSTRUCTIONS) or b""
    return repository_map.build(vcs.paths(commit), instructions.decode("utf-8", "replace"))
