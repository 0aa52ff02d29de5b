"""Sample facts, one builder for each, and a clock that a test moves by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from harness.model import events as ev
from harness.model.ids import RunId

RUN = RunId("r1")
OTHER = RunId("r2")
BASE = "a" * 40
WORK = "b" * 40
MERGE = "c" * 40
TREE = "d" * 40
FAR_AWAY = {"pid": 4242, "host": "another-host", "boot_id": "another-boot", "start_time": "99"}


class HandClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
        self.slept = 0.0
        self.meanwhile: Callable[[], object] = lambda: None

    def now(self) -> datetime:
        return self.moment

    def commit_time(self) -> int:
        return int(self.moment.timestamp())

    def sleep(self, seconds: float) -> None:
        """Waits for nobody; what a test put into `meanwhile` happens instead."""
        self.slept += seconds
        self.meanwhile()

    def move(self, milliseconds: int) -> None:
        self.moment += timedelta(milliseconds=milliseconds)


def run_created(steps: int = 2) -> ev.RunCreated:
    return ev.RunCreated(
        goal="a goal",
        plan={"steps": [{"title": f"step {idx}"} for idx in range(steps)]},
        plan_path="plan.yaml",
        plan_digest="e" * 64,
        base=BASE,
        target="refs/heads/main",
        integration_ref="refs/heads/orchestrix/r1/integration",
    )


def run_started(epoch: int = 1) -> ev.RunStarted:
    return ev.RunStarted(epoch=epoch, holder={"pid": 1}, resumed=epoch > 1)


def run_finished(status: str = "succeeded", exit_code: int = 0) -> ev.RunFinished:
    return ev.RunFinished(status=status, exit_code=exit_code, head=MERGE, merged=1, failed=0)


def of(idx: int = 0, *, run: str = RUN, again: int = 0) -> dict[str, object]:
    """The fields that every fact about one sub-agent has; `again` counts its replacements."""
    suffix = f".{again}" if again else ""
    return {"sub_agent_id": f"{run}/{idx}{suffix}", "step_idx": idx, "task": str(idx)}


def created(**who) -> ev.SubagentCreated:
    contract = {"step": {"title": "née"}, "permissions": {"allowed_tools": ["read_file"]}}
    return ev.SubagentCreated(**who, title="a step", step_id=None, contract=contract)


def started(**who) -> ev.SubagentStarted:
    return ev.SubagentStarted(**who, start_point=BASE, branch="refs/heads/orchestrix/r1/0/work")


def attempt(number: int = 1, **who) -> ev.SubagentAttempt:
    return ev.SubagentAttempt(**who, attempt=number, agent="command", sandbox="none")


def attempt_finished(*, ok: bool = True, reason: str | None = None, **who) -> ev.AttemptFinished:
    return ev.AttemptFinished(**who, attempt=1, ok=ok, reason=reason, message="said so", duration_ms=5)


def tool_called(message: str = "done", **who) -> ev.ToolCalled:
    return ev.ToolCalled(**who, tool="run", arguments={"argv": ["true"]}, ok=True, message=message)


def waiting(**who) -> ev.SubagentWaitingForMerge:
    return ev.SubagentWaitingForMerge(**who, commit=WORK, tree=TREE, changed_paths=["a.py", "b.py"], report="r.md")


def failed(**who) -> ev.SubagentFailed:
    return ev.SubagentFailed(**who, reason="agent_failed", message="it broke", kept_ref="refs/orchestrix/keep/r1/0/x")


def merged(**who) -> ev.WorktreeMerged:
    return ev.WorktreeMerged(**who, commit=WORK, merge_commit=MERGE, previous=BASE, tree=TREE)


def integration_failed(**who) -> ev.IntegrationFailed:
    conflicts = [{"path": "a.py", "message": "content"}]
    return ev.IntegrationFailed(**who, reason="merge_conflict", message="conflict", conflicts=conflicts)


def closed(final_status: str, reason: str = "merged", **who) -> ev.SubagentClosed:
    return ev.SubagentClosed(**who, final_status=final_status, close_reason=reason)


def merged_step(**who) -> list[ev.Fact]:
    """The whole life of a sub-agent whose work was merged."""
    return [
        created(**who),
        started(**who),
        attempt(**who),
        attempt_finished(**who),
        waiting(**who),
        merged(**who),
        closed("completed", **who),
    ]


def conflicted_step(**who) -> list[ev.Fact]:
    """The whole life of a sub-agent whose work could not be merged."""
    return [*merged_step(**who)[:5], integration_failed(**who), closed("failed", "merge_conflict", **who)]


def failed_step(**who) -> list[ev.Fact]:
    """The whole life of a sub-agent that never parked."""
    return [*merged_step(**who)[:3], failed(**who), closed("failed", "agent_failed", **who)]
