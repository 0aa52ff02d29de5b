"""The end of a run that the log carries: the head is where it must be, the page is written, the outcome follows."""

from __future__ import annotations

from harness.engine import integrate, summary
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.model.supervision import TERMINATIONS
from harness.model.verdict import Reason, exit_code


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
    summary.write(ctx, code, response)
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
