"""The end of a run that the log carries: the head is where it must be, its page `run.md` is written, the outcome follows."""

from __future__ import annotations

from harness.engine import integrate, reports
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import usage
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState, StepState
from harness.model.supervision import TERMINATIONS
from harness.model.verdict import Reason, exit_code
from harness.model.visible import visible


async def finish(ctx: Context, response: str, ended: Reason | None = None) -> RunState:
    """Every child is closed: the first failed one in plan order decides the exit code, or why the run was `ended`."""
    if ended is None:
        await integrate.restored_head(ctx)
    steps = ctx.journal.state.ordered()
    failed = [step for step in steps if step.final_status != "completed"]
    code = exit_code(Reason(failed[0].close_reason or Reason.AGENT_FAILED)) if failed else 0
    status = RunStatus.FAILED if failed else RunStatus.SUCCEEDED
    if ended is not None and ended in TERMINATIONS:  # a safe stop: its steps say so, where there are some
        code, status = code or exit_code(ended), RunStatus.FAILED
    elif ended is not None:
        code, status = exit_code(ended), RunStatus.CANCELLED
    reports.replace(ctx.run_dir / "run.md", _page(ctx, code, response).encode())
    return ctx.journal.append(
        ev.WorkflowFinalized(
            status="FAILED" if code else "COMPLETED", final_response_length=len(response), final_response=response
        ),
        ev.RunFinished(
            status=status,
            exit_code=code,
            head=ctx.journal.state.head,
            merged=len(steps) - len(failed),
            failed=len(failed),
        ),
    )


def _page(ctx: Context, code: int, response: str) -> str:
    """What was asked, what landed on the integration branch, and what did not."""
    state = ctx.journal.state
    steps = state.ordered()
    merged = sum(step.final_status == "completed" for step in steps)
    goal = " ".join(state.goal.split()) or "(no goal given)"
    head = [
        f"# Run {ctx.run_id}",
        "",
        f"Goal: {goal}",
        "",
        f"{merged} of {len(steps)} steps merged; exit code {code}.",
        "",
        f"- base: {state.base}",
        f"- result: {state.head} on {state.integration_ref}",
        *([f"- usage: {spent}"] if (spent := usage.sentence(state.usage)) else []),
        "",
        "| step | title | outcome | reason | commit or kept work | usage |",
        "|---|---|---|---|---|---|",
    ]
    said = ["", "## Answer", "", response] if response else []
    return visible("\n".join([*head, *(_row(step) for step in steps), *said, ""]))


def _row(step: StepState) -> str:
    title = " ".join(step.title.split()).replace("\\", "\\\\").replace("|", "\\|")
    where = step.merge_commit or step.kept_ref or ""
    told = usage.sentence(step.usage)
    return f"| {step.task_id} | {title} | {step.final_status} | {step.close_reason} | {where} | {told} |"
