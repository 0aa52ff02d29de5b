"""The loop of one run: steps side by side, integration in plan order, an end that the log carries."""

from __future__ import annotations

import asyncio

from harness.engine import delegate, integrate, summary
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.lifecycle import RunStatus, State
from harness.model.state import RunState
from harness.model.verdict import Failure, Reason, exit_code


class Coordinator:
    """Drives every step of one run from wherever the log says it is to `closed`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tasks: dict[TaskId, asyncio.Task[None]] = {}
        self._settled: dict[TaskId, asyncio.Event] = {}
        self._abandoned: dict[TaskId, Failure] = {}

    async def run(self) -> RunState:
        """Until every child is closed; cancelled, it ends the children and leaves the run resumable."""
        order = [TaskId(step.task_id) for step in self._ctx.journal.state.ordered()]
        self._settled = {task: asyncio.Event() for task in order}
        try:
            async with asyncio.TaskGroup() as group:
                for task in order:
                    self._tasks[task] = group.create_task(self._step(task), name=f"step {task}")
                group.create_task(self._integrate(order), name="integration")
        except BaseExceptionGroup as group_error:
            raise _first(group_error) from group_error
        await integrate.restored_head(self._ctx)
        return self._finish()

    async def _step(self, task: TaskId) -> None:
        """Delegates the step when its needs have parked; an abandoned one is failed with the reason it was given."""
        try:
            await self._delegate(task)
        except asyncio.CancelledError:
            failure = self._abandoned.get(task)
            if failure is None or self._ctx.step(task).state not in (State.CREATED, State.RUNNING):
                raise
            delegate.fail(self._ctx, task, failure)
        if self._ctx.step(task).state is State.FAILED:
            await integrate.close(self._ctx, task)
        if self._ctx.step(task).final_status == "failed":
            self._after_failure(task)
        self._settled[task].set()

    async def _delegate(self, task: TaskId) -> None:
        ctx = self._ctx
        await asyncio.sleep(0)  # every step has begun before one can be abandoned: a task that has not, cannot answer
        if ctx.step(task).state not in (State.CREATED, State.RUNNING):
            return
        needs = self._needs(task)
        for need in needs:
            await self._settled[ctx.task(need)].wait()
        async with ctx.slots:
            if task in self._abandoned:
                delegate.fail(ctx, task, self._abandoned[task])
            else:
                await delegate.delegate(ctx, task, needs)

    async def _integrate(self, order: list[TaskId]) -> None:
        """In plan order, each as soon as all before it are closed."""
        for task in order:
            await self._settled[task].wait()
            state = self._ctx.step(task).state
            if state is State.WAITING_FOR_MERGE:
                await self._integrate_one(task)
            elif state in (State.COMPLETED, State.FAILED):
                await integrate.close(self._ctx, task)

    async def _integrate_one(self, task: TaskId) -> None:
        if task in self._abandoned:
            await integrate.refuse(self._ctx, task, self._abandoned[task])
        else:
            await integrate.integrate(self._ctx, task, self._needs(task))
        await integrate.close(self._ctx, task)
        if self._ctx.step(task).final_status == "failed":
            self._after_failure(task)

    def _needs(self, task: TaskId) -> tuple[int, ...]:
        return self._ctx.schedule.closure(int(task))

    def _after_failure(self, failed: TaskId) -> None:
        """Dependants never run on a failed step; with `on_failure: stop`, nothing after it in the plan goes on."""
        stop = self._ctx.plan.on_failure == "stop"
        for task in self._tasks:
            if task in self._abandoned or task.order <= failed.order or self._ctx.step(task).done:
                continue
            if int(failed) in self._needs(task):
                self._abandon(task, _dependency(task, int(failed)))
            elif stop:
                self._abandon(task, Failure(Reason.STOPPED, f"the run stops at failed step {failed}"))

    def _abandon(self, task: TaskId, failure: Failure) -> None:
        self._abandoned[task] = failure
        if self._ctx.step(task).state in (State.CREATED, State.RUNNING):
            self._tasks[task].cancel()

    def _finish(self) -> RunState:
        ctx = self._ctx
        steps = ctx.journal.state.ordered()
        failed = [step for step in steps if step.final_status != "completed"]
        code = exit_code(Reason(failed[0].close_reason or Reason.AGENT_FAILED)) if failed else 0
        summary.write(ctx, code)
        return ctx.journal.append(
            ev.RunFinished(
                status=RunStatus.FAILED if failed else RunStatus.SUCCEEDED,
                exit_code=code,
                head=ctx.journal.state.head,
                merged=len(steps) - len(failed),
                failed=len(failed),
            )
        )


def _dependency(task: TaskId, need: int) -> Failure:
    return Failure(Reason.DEPENDENCY_FAILED, f"step {task} needs step {need}, which failed")


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one cause that a person should hear of."""
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    return group
