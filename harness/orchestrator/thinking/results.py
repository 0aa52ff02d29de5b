"""How the steps of a run ended, as the questions about them need it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.late import dataclass
from harness.model.state import RunState
from harness.orchestrator.thinking.size import cut, tokens


@dataclass(frozen=True, slots=True)
class Result:
    """One step that is over; `report` is what its agent and the harness wrote about it."""

    task_id: str
    title: str
    completed: bool
    reason: str = ""
    message: str = ""
    changed_paths: tuple[str, ...] = ()
    report: str = ""

    @property
    def headline(self) -> str:
        """One line, from facts only."""
        status = "completed" if self.completed else f"failed ({self.reason}: {' '.join(self.message.split())[:200]})"
        return f"step {self.task_id}, {self.title}: {status}"


def of_run(state: RunState, reports: dict[str, str]) -> list[Result]:
    """Every step in order; `reports` by task id."""
    return [
        Result(
            task_id=step.task_id,
            title=step.title,
            completed=step.final_status == "completed",
            reason=step.close_reason or "",
            message=step.message or "",
            changed_paths=step.changed_paths,
            report=reports.get(step.task_id, ""),
        )
        for step in state.ordered()
    ]


def told(results: Sequence[Result], budget: int) -> str:
    """Headlines of all, and as much of every report as fits, in equal shares."""
    heads = "\n".join(result.headline for result in results)
    share = max(budget - tokens(heads), 0) // max(len(results), 1)
    parts = [f"{result.headline}\n{cut(result.report.strip(), share)}".strip() for result in results]
    return cut("\n\n".join(parts), budget)
