"""The loop of a run: ask the router, log what it decided, call the nodes, wait for a change."""

from __future__ import annotations

from collections.abc import Iterable

from harness.engine import ending, recover
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import limits
from harness.model.ids import TaskId
from harness.model.supervision import Verdict
from harness.orchestrator import router, supervisor
from harness.orchestrator.maintenance import Maintenance
from harness.orchestrator.nodes import NODES
from harness.orchestrator.router import Decision
from harness.orchestrator.run import Run
from harness.orchestrator.running_tasks import RunningTasks


async def drive(ctx: Context) -> None:
    """Until every child is closed and the run has its outcome; cancelled, it ends the children and leaves them resumable."""
    async with RunningTasks(ctx) as tasks:
        run, maintenance = Run(ctx, tasks), Maintenance(ctx)
        await _carry_out(run, _left_over(ctx))
        while not (ctx.journal.state.ended or ctx.journal.state.waiting or ctx.journal.state.cancelling):
            await _tick(run, maintenance)
        if ctx.journal.state.cancelling:  # else what is left of a task that closed its step goes on to its end
            tasks.end()
        if ctx.journal.state.waiting:
            maintenance.checkpoint()
        elif ctx.nest is None:
            maintenance.save()
    if ctx.journal.state.cancelling is not None:  # a limit of the run was reached
        await recover.recover(ctx)
        await close(ctx)


async def close(ctx: Context) -> None:
    """In place of the loop: every child is closed, and the checkpoint has the end."""
    await ending.close_all(ctx)
    if ctx.nest is None:
        Maintenance(ctx).save()


def _left_over(ctx: Context) -> list[Decision]:
    """What an earlier coordinator decided and did not carry out: it is carried out, not decided again."""
    state = ctx.journal.state
    held = [(state.decided, None), *((step.decided, step.task_id) for step in state.ordered())]
    return [Decision(node, "decided before", task, "") for node, task in held if node is not None]


async def _tick(run: Run, maintenance: Maintenance) -> None:
    """Decides what is next and has it done, or waits until there is something to decide."""
    ctx = run.ctx
    now, board, state = ctx.parts.clock.now(), run.board(), ctx.journal.state
    decisions = router.routed(board, state, now)[: limits.TICK_DECISIONS]
    judged = [supervisor.judge(ctx, decision, state.decisions + number) for number, decision in enumerate(decisions, 1)]
    stop = supervisor.inherited(state) or next((item for item in judged if item.termination), None)
    if stop is not None:
        ctx.journal.append(supervisor.stopped(ctx, stop))
        return
    if decisions:
        ctx.journal.append(*_facts(decisions, judged, ctx))
        await _carry_out(run, decisions)
        return
    due = router.next_due(board, now)
    if run.tasks.idle and (due is None or router.over_budget(state, now)):
        ctx.journal.append(router.standstill(state, now, run.tasks.waits))
        return
    again = maintenance.look()
    await run.tasks.change(min((pause for pause in (due, again) if pause is not None), default=None))


async def _carry_out(run: Run, decisions: Iterable[Decision]) -> None:
    for decision in decisions:
        await NODES[decision.node](run, None if decision.task is None else TaskId(decision.task))


def _facts(decisions: Iterable[Decision], judged: Iterable[Verdict], ctx: Context) -> list[ev.Fact]:
    """The decisions, and with each first one for a task that the task was started; one append for all."""
    facts: list[ev.Fact] = []
    for number, (decision, verdict) in enumerate(zip(decisions, judged, strict=True), 1):
        facts.append(supervisor.decided(ctx, decision, verdict, ctx.journal.state.decisions + number))
        if decision.node == router.EXECUTOR and not ctx.journal.state.steps[decision.task or ""].attempts:
            facts.append(ev.TaskStarted(task=decision.task, node=decision.node, persona=decision.persona))
    return facts
