"""The run's own page, `run.md`: what was asked, what landed on the integration branch, what did not."""

from __future__ import annotations

from harness.engine import reports
from harness.engine.context import Context
from harness.model.state import StepState
from harness.model.visible import visible


def write(ctx: Context, exit_code: int, response: str) -> None:
    """Replaces `run.md` in the run's archive."""
    reports.replace(ctx.run_dir / "run.md", text(ctx, exit_code, response).encode())


def text(ctx: Context, exit_code: int, response: str) -> str:
    state = ctx.journal.state
    steps = state.ordered()
    merged = sum(step.final_status == "completed" for step in steps)
    goal = " ".join(state.goal.split()) or "(no goal given)"
    head = [
        f"# Run {ctx.run_id}",
        "",
        f"Goal: {goal}",
        "",
        f"{merged} of {len(steps)} steps merged; exit code {exit_code}.",
        "",
        f"- base: {state.base}",
        f"- result: {state.head} on {state.integration_ref}",
        "",
        "| step | title | outcome | reason | commit or kept work |",
        "|---|---|---|---|---|",
    ]
    said = ["", "## Answer", "", response] if response else []
    return visible("\n".join([*head, *(_row(step) for step in steps), *said, ""]))


def _row(step: StepState) -> str:
    title = " ".join(step.title.split()).replace("\\", "\\\\").replace("|", "\\|")
    where = step.merge_commit or step.kept_ref or ""
    return f"| {step.task_id} | {title} | {step.final_status} | {step.close_reason} | {where} |"
