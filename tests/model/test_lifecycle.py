"""The state machine of seed 003, section 3, and nothing else."""

from __future__ import annotations

from itertools import product

import pytest

from harness.errors import Exit, IllegalTransition
from harness.model.lifecycle import TRANSITIONS, State, check


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_only_the_known_pairs_are_transitions(old, new):
    """Every other pair, staying included, is refused with the sub-agent's name."""
    allowed = {
        "created": {"running", "failed"},
        "running": {"waiting_for_merge", "failed"},
        "waiting_for_merge": {"completed", "failed"},
        "completed": {"closed"},
        "failed": {"closed"},
        "closed": set(),
    }
    if new in allowed[old]:
        assert check("r1/0", old, new) is new
    else:
        with pytest.raises(IllegalTransition, match=f"sub-agent r1/0 cannot go from {old} to {new}") as caught:
            check("r1/0", old, new)
        assert caught.value.exit_code == Exit.VIOLATION


def test_every_state_leads_to_closed():
    """There is no way to get stuck, and no way out of closed."""
    reached = {State.CLOSED}
    while grown := {old for old, new in TRANSITIONS if new in reached} - reached:
        reached |= grown
    assert reached == set(State)
    assert not [pair for pair in TRANSITIONS if pair[0] is State.CLOSED]


def test_completed_is_reached_from_waiting_for_merge_only():
    """Nothing counts as done before it was integrated."""
    assert {old for old, new in TRANSITIONS if new is State.COMPLETED} == {State.WAITING_FOR_MERGE}
