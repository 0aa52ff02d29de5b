"""A board that follows the log says what one that is made from the whole state says."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from orchestrator.boards import NOW, plan_of, policies, state_of, step

from harness.model.lifecycle import State
from harness.model.state import RunState
from harness.orchestrator import router
from harness.orchestrator.board import Board, Boards

_STEPS = 12


class _Journal:
    """What a board follows: a state, and which tasks changed."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self._changed: set[str] = set()

    def change(self, idx: int, **fields: Any) -> None:
        changed = replace(self.state.steps[str(idx)], **fields)
        self.state = replace(self.state, steps=MappingProxyType(self.state.steps | {str(idx): changed}))
        self._changed.add(str(idx))

    def changed(self) -> set[str]:
        found, self._changed = self._changed, set()
        return found


@pytest.mark.parametrize("seed", range(20))
def test_following_is_as_good_as_looking_at_everything(seed: int) -> None:
    """After any changes, retries of closed steps among them, both route alike and name the same pause."""
    chance = random.Random(seed)
    plan = plan_of(*({"needs": [idx - 3]} if idx % 4 == 3 else {} for idx in range(_STEPS)))
    known = policies(plan, jobs=3)
    journal = _Journal(state_of(*(step(idx) for idx in range(_STEPS))))
    boards = Boards(journal)  # type: ignore[arg-type]  # a journal in what a board asks of it
    for _ in range(60):
        for _ in range(chance.randrange(1, 4)):
            journal.change(chance.randrange(_STEPS), **_anything(chance))
        kept, made = boards.now(known), Board.of(journal.state, known)
        assert (list(kept.open), kept.parked, kept.failed) == (list(made.open), made.parked, made.failed)
        assert router.routed(kept, journal.state, NOW) == router.route(journal.state, known, NOW)
        assert router.next_due(kept, NOW) == router.next_due(made, NOW)


def test_another_plan_is_another_board() -> None:
    """A run that began with a goal gets its steps on the way."""
    journal = _Journal(state_of())
    boards = Boards(journal)  # type: ignore[arg-type]  # as above
    assert not boards.now(policies(plan_of({}))).open
    journal.state = state_of(step(0))
    assert list(boards.now(policies(plan_of({}))).open) == [0]


def _anything(chance: random.Random) -> dict[str, Any]:
    state = chance.choice(list(State))
    return {
        "state": state,
        "final_status": chance.choice(["completed", "failed"]) if state is State.CLOSED else None,
        "decided": chance.choice([None, None, router.EXECUTOR, router.UPDATER]),
        "last_reason": chance.choice([None, "agent_failed"]),
        "next_attempt_at": chance.choice([None, None, (NOW + timedelta(seconds=1)).isoformat()]),
        "pause_ms": 2_000,
        "refused": chance.random() < 0.1,
        "escalated": chance.random() < 0.1,
    }
