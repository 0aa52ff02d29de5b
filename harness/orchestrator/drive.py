"""The loop: ask the router, log what it decided, let the nodes do it, wait for a change.

A turn of the supervisor's native driver carries out the decisions of one tick; nodes that take time leave their work
with the crew and return.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from harness.engine import ending
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import limits
from harness.model.plan import Plan
from harness.orchestrator import nodes, router, waiting
from harness.orchestrator.board import Boards
from harness.orchestrator.crew import Crew
from harness.orchestrator.decision import Decision
from harness.orchestrator.maintenance import Maintenance
from harness.orchestrator.policies import Policies
from harness.orchestrator.steady import SteadyClock
from harness.orchestrator.supervisor import NAME, RoutingSupervisor
from harness.supervisor import scope
from harness.supervisor.assembly import Assembly
from harness.supervisor.drivers import native
from harness.supervisor.scope import Place


async def drive(ctx: Context) -> None:
    """Until every child is closed and the run has its outcome; cancelled, it ends the children and leaves them resumable."""
    async with Crew(ctx) as crew:
        loop = _Loop(ctx, crew)
        await loop.carry_out(loop.left_over())
        while not (ctx.journal.state.ended or ctx.journal.state.waiting):
            await loop.tick()
        if ctx.journal.state.waiting:
            loop.maintenance.checkpoint()
        elif ctx.nest is None:
            loop.maintenance.save()


async def close(ctx: Context) -> None:
    """In place of the loop: every child is closed, and the checkpoint has the end."""
    await ending.close_all(ctx)
    if ctx.nest is None:
        Maintenance(ctx).save()


class _Loop:
    def __init__(self, ctx: Context, crew: Crew) -> None:
        self._ctx = ctx
        self._crew = crew
        self._clock = SteadyClock(ctx.parts.clock)
        self._queue: deque[Decision] = deque()
        self._supervisor = RoutingSupervisor(self._queue)
        self._registry = nodes.registry()
        self._level = scope.root(self._registry, None, None, hierarchical=False)
        self.maintenance = Maintenance(ctx)
        self._boards = Boards(ctx.journal)
        self._known: tuple[Plan, Policies, Assembly] | None = None

    def left_over(self) -> list[Decision]:
        """What an earlier coordinator decided and did not carry out: it is carried out, not decided again."""
        state = self._ctx.journal.state
        held = [(state.decided, None), *((step.decided, step.task_id) for step in state.ordered())]
        return [Decision(node, "decided before", task, "") for node, task in held if node is not None]

    def _of_plan(self) -> tuple[Policies, Assembly]:
        """Policies and nodes for the present plan: a run that began with a goal gets one on the way."""
        if self._known is None or self._known[0] is not self._ctx.plan:
            policies = Policies.of(self._ctx)
            self._known = (self._ctx.plan, policies, self._assembly(policies))
        return self._known[1:]

    def _assembly(self, policies: Policies) -> Assembly:
        services = {
            "ctx": self._ctx,
            "crew": self._crew,
            "policies": policies,
            "boards": self._boards,
            "clock": self._clock,
        }
        return Assembly(self._registry, supervisor_factory=lambda _name, _llm: self._supervisor, services=services)

    async def tick(self) -> None:
        """Decides what is next and has it done, or waits until there is something to decide."""
        now = self._clock.now()
        board, state = self._boards.now(self._of_plan()[0]), self._ctx.journal.state
        decisions = router.routed(board, state, now)[: limits.TICK_DECISIONS]
        if decisions:
            self._ctx.journal.append(*_facts(decisions, self._ctx))
            await self.carry_out(decisions)
            return
        due = router.next_due(board, now)
        if self._crew.idle and (due is None or router.over_budget(state, now)):
            self._ctx.journal.append(waiting.why(state, now, self._crew.waits))
            return
        again = self.maintenance.look()
        await self._crew.change(min((pause for pause in (due, again) if pause is not None), default=None))

    async def carry_out(self, decisions: Iterable[Decision]) -> None:
        self._queue.extend(decisions)
        while self._queue:
            await native.walk(self._of_plan()[1], self._level, Place("supervisor", NAME), {})


def _facts(decisions: Iterable[Decision], ctx: Context) -> list[ev.Fact]:
    """The decisions, and with each first one for a task that the task was started; one append for all."""
    facts: list[ev.Fact] = []
    for decision in decisions:
        facts.append(decision.fact())
        if decision.chosen_node == router.EXECUTOR and not ctx.journal.state.steps[decision.task_id or ""].attempts:
            facts.append(ev.TaskStarted(task=decision.task_id, node=decision.chosen_node, persona=decision.persona))
    return facts
