"""How a CI job ended, from the log alone: one case for each step, and the error that ended it before its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from harness.errors import OrchestrixError
from harness.model import events as ev
from harness.model import view
from harness.model.ids import RefName
from harness.model.late import dataclass
from harness.model.lifecycle import RunStatus, State
from harness.model.state import RunState, StepState
from harness.model.verdict import Reason

_NEVER_JUDGED = (Reason.DEPENDENCY_FAILED, Reason.STOPPED)


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Case:
    """One step, as CI systems count it; `output` is the bounded end of what its programs printed."""

    step: StepState
    verdict: Verdict
    duration_ms: int
    output: str

    @property
    def reason(self) -> str:
        return self.step.close_reason or self.step.state.value

    @property
    def message(self) -> str:
        return self.step.message or ""

    @property
    def name(self) -> str:
        return f"step {self.step.task_id}: {self.step.title}"


@dataclass(frozen=True, slots=True)
class Result:
    """`state` is None when the run could not start; `error` is what ended the job other than a failed step.

    `unpublished` is what else could not be written down.
    """

    state: RunState | None
    error: OrchestrixError | None
    cases: tuple[Case, ...] = ()
    unpublished: tuple[OrchestrixError, ...] = ()

    def without(self, problems: Sequence[OrchestrixError]) -> Result:
        """The result when these things could not be published: never a success, and never hiding a worse cause."""
        if not problems or self.exit_code:
            return replace(self, unpublished=(*self.unpublished, *problems))
        return replace(self, error=problems[0], unpublished=tuple(problems[1:]))

    @property
    def exit_code(self) -> int:
        if self.error is not None:
            return self.error.exit_code
        return (self.state and self.state.exit_code) or 0

    @property
    def status(self) -> str:
        return str(self.data()["status"])

    @property
    def branch(self) -> str:
        """The branch that holds what was merged."""
        return RefName(self.state.integration_ref).short if self.state else ""

    def count(self, *verdicts: Verdict) -> int:
        return sum(case.verdict in verdicts for case in self.cases)

    def data(self) -> dict[str, Any]:
        """What `run --json` gives as `data`; a run that could not start has no id and no steps."""
        if self.state is None:
            started: dict[str, Any] = {"run_id": None, "status": RunStatus.FAILED.value, "steps": []}
        else:
            started = view.run(self.state, held=False)
        return {**started, "exit_code": self.exit_code}


def cases(state: RunState, envelopes: Iterable[ev.Envelope], tails: Mapping[str, str]) -> tuple[Case, ...]:
    """The steps in plan order; `tails` holds the end of each step's log by task id."""
    durations: dict[str, int] = {}
    merged_checks: dict[str, str] = {}
    for envelope in envelopes:
        fact = envelope.fact()
        if isinstance(fact, ev.AttemptFinished):
            durations[fact.sub_agent_id] = durations.get(fact.sub_agent_id, 0) + fact.duration_ms
        elif isinstance(fact, ev.CheckFinished) and fact.where == "merged":
            durations[fact.sub_agent_id] = durations.get(fact.sub_agent_id, 0) + fact.duration_ms
            if not fact.ok:
                merged_checks[fact.sub_agent_id] = f"\n[check on the merged tree]\n{fact.output_tail}"
    return tuple(
        Case(
            step=step,
            verdict=_verdict(step),
            duration_ms=durations.get(step.sub_agent_id, 0),
            output=tails.get(step.task_id, "") + merged_checks.get(step.sub_agent_id, ""),
        )
        for step in state.ordered()
    )


def _verdict(step: StepState) -> Verdict:
    if step.final_status == "completed":
        return Verdict.PASSED
    if step.close_reason is not None:
        return Verdict.SKIPPED if step.close_reason in _NEVER_JUDGED else Verdict.FAILED
    return Verdict.SKIPPED if step.state is State.CREATED else Verdict.UNFINISHED
