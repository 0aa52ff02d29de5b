"""Progress on stderr: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.cli import output, streams
from harness.model.events import Fact
from harness.model.ids import RunId
from harness.model.lifecycle import State
from harness.model.state import RunState
from harness.model.visible import visible
from harness.ports import Store

Watch = Callable[[Fact, RunState], None]

# What a person wants to see go by; the rest is in `orchestrix events`.
_SHOWN = (
    "run.",
    "agent.",
    "parent_",
    "acp.",
    "permission.denied",
    "tool.denied",
    "check.finished",
    "work.kept",
    "ownership.",
)
_AROUND = 4  # lines of a table that are not rows
_STYLES = {"merged": "green", "waiting_for_merge": "cyan", "running": "yellow", "failed": "red"}


class Heard:
    """The final answer of a model as it comes, for a person at this stderr; the log keeps the whole of it."""

    def __init__(self) -> None:
        self.text = ""
        self.live = False  # whether a table on the terminal shows it

    def __call__(self, text: str) -> None:
        self.text += text
        if not self.live and sys.stderr.isatty():
            sys.stderr.write(visible(text))
            sys.stderr.flush()

    def end_line(self) -> None:
        """Lets what is said next begin on a line of its own."""
        if self.text and not self.text.endswith("\n"):
            self("\n")

    def tail(self, lines: int) -> str:
        """As much of its end as fits on a screen."""
        return "\n".join(visible(self.text).splitlines()[-max(lines, 1) :])


@contextmanager
def watching(*, quiet: bool, verbose: bool = False, heard: Heard | None = None) -> Iterator[Watch]:
    """A watcher for this stderr; on a terminal it also shows what is `heard`, until the run has ended."""
    if quiet:
        yield lambda _fact, _state: None
    elif _is_terminal() and not verbose:
        with _live(heard or Heard()) as watch:
            yield watch
    else:
        yield lambda fact, _state: _plain(fact, heard, verbose=verbose)


def envelopes(store: Store) -> Watch:
    """Prints every envelope of the run as one JSON line, as soon as it is durable."""
    seen = 0
    streams.carry_progress()  # a reader that goes away, or a full disk behind stdout, ends the telling, not the run

    def watch(_fact: Fact, state: RunState) -> None:
        nonlocal seen
        for envelope in store.events(RunId(state.run_id), seen):
            seen = envelope.seq
            sys.stdout.write(output.as_json_text(envelope.as_dict()) + "\n")
        sys.stdout.flush()

    return watch


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def _plain(fact: Fact, heard: Heard | None, *, verbose: bool) -> None:
    if verbose or fact.type.startswith(_SHOWN):
        if heard is not None:
            heard.end_line()
        output.say(fact.summary)


@contextmanager
def _live(heard: Heard) -> Iterator[Watch]:
    from rich.console import Console, Group  # noqa: PLC0415 - only terminals pay for it
    from rich.live import Live  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR")))
    latest: list[RunState] = []
    heard.live = True

    def watch(_fact: Fact, state: RunState) -> None:
        latest[:] = [state]

    def shown() -> Any:
        """Drawn as often as anybody can see it, not for each fact."""
        if not latest:
            return ""
        table = _table(latest[0], console.height - _AROUND)
        if not heard.text or latest[0].ended:  # the whole answer is printed with the outcome
            return table
        room = console.height - _AROUND - table.row_count
        return Group(table, Text(f"\n{heard.tail(room)}"))

    with Live(console=console, refresh_per_second=8, transient=False, get_renderable=shown):
        yield watch


def _table(state: RunState, most: int) -> Any:
    """Every step where that fits on the screen, else those that somebody works on or that failed."""
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    steps = state.ordered()
    merged = sum(step.final_status == "completed" for step in steps)
    table = Table(title=f"run {state.run_id}: {merged} of {len(steps)} merged", title_justify="left", box=None)
    for name in ("step", "title", "state", "reason"):
        table.add_column(name)
    if len(steps) > most:
        steps = [step for step in steps if step.state is not State.CREATED and step.final_status != "completed"]
    for step in steps[-most:]:
        shown = step.close_reason if step.done else step.state.value
        style = _STYLES.get(shown or "", "red" if step.final_status == "failed" else "")
        table.add_row(
            step.task_id,
            Text(visible(step.title)[:60]),
            Text(step.state.value),
            Text(step.close_reason or "", style=style),
        )
    return table
