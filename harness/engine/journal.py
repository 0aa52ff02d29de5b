"""The coordinator's pen: every append goes through here, and nothing acts once an append has failed."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from harness.engine import failpoints
from harness.errors import OrchestrixError
from harness.model.events import Envelope, Fact, StepFact, SubagentClosed, SubagentFailed, SubagentWaitingForMerge
from harness.model.ids import TaskId
from harness.model.state import RunState, StepState
from harness.ports import Lease, Store

Watch = Callable[[Fact, RunState], None]
_SETTLING = (SubagentWaitingForMerge, SubagentFailed)


class Journal:
    """One coordinator's view of one run's log."""

    def __init__(self, store: Store, lease: Lease, state: RunState, watch: Watch) -> None:
        self._store = store
        self._watch = watch
        self._facts: defaultdict[str, list[StepFact]] = defaultdict(list)
        self.lease = lease
        self.state = state
        self.broken: Exception | None = None
        self._changed: set[str] = set()
        self.closed = 0  # sub-agents, by this coordinator
        self.settled = asyncio.Event()  # set whenever a step parks or fails; whoever waits for it clears it

    def remember(self, envelopes: Iterable[Envelope]) -> None:
        """Takes in what an earlier coordinator wrote, for the reports."""
        for envelope in envelopes:
            fact = envelope.fact()
            if isinstance(fact, StepFact):
                self._keep(fact)

    def append(self, *facts: Fact) -> RunState:
        """Durable, when a fact announces an effect, before it returns; after a failure every later call raises the same error."""
        if self.broken is not None:
            raise self.broken
        for fact in facts:
            failpoints.hit(f"before:{fact.type}")
        try:
            self.state = self._store.append(self.lease, facts)
        except OrchestrixError as error:
            self.broken = error
            raise
        for fact in facts:
            failpoints.hit(f"after:{fact.type}")
            if isinstance(fact, StepFact):
                self._keep(fact)
            if fact.task_id is not None:
                self._changed.add(fact.task_id)
            self.closed += isinstance(fact, SubagentClosed)
            if isinstance(fact, _SETTLING):
                self.settled.set()
            self._watch(fact, self.state)
        return self.state

    def _keep(self, fact: StepFact) -> None:
        """Until the sub-agent is closed: its report is written by then, and a long run must not grow with its log."""
        if isinstance(fact, SubagentClosed):
            self._facts.pop(fact.sub_agent_id, None)
        else:
            self._facts[fact.sub_agent_id].append(fact)

    def changed(self) -> set[str]:
        """The tasks that facts were appended about since the last call."""
        found, self._changed = self._changed, set()
        return found

    def step(self, task: TaskId) -> StepState:
        return self.state.steps[task]

    def facts(self, task: TaskId) -> list[StepFact]:
        """Everything the log says of the step's present sub-agent, while it is not closed."""
        return self._facts[self.step(task).sub_agent_id]
