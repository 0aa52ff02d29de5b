"""The live table: a plan of many steps fits on the screen, and is drawn when it is looked at."""

from __future__ import annotations

import io
from dataclasses import replace

from orchestrator.boards import closed, state_of, step
from rich.console import Console

from harness.cli import progress
from harness.model.lifecycle import State


def drawn(most: int) -> str:
    steps = [
        closed(0),
        closed(1, "failed"),
        replace(step(2), state=State.RUNNING),
        *(step(idx) for idx in range(3, 90)),
    ]
    said = io.StringIO()
    Console(file=said, width=100).print(progress._table(state_of(*steps), most))
    return said.getvalue()


def test_every_step_is_shown_where_there_is_room() -> None:
    """One line for each, and how many are merged."""
    assert all(f"step {idx}" in drawn(90) for idx in range(90))
    assert "1 of 90 merged" in drawn(90)


def test_with_many_steps_those_are_shown_that_somebody_works_on_or_that_failed() -> None:
    """Neither what is merged nor what has not begun pushes them off the screen."""
    text = drawn(20)
    assert ("step 1" in text, "step 2" in text, "step 0" in text, "step 50" in text) == (True, True, False, False)
