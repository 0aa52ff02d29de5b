"""What a CI job prints: while the guard is up, only `obey` gets a workflow command past it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

from harness.ci import workflow


class Guarded(io.TextIOBase):
    """A stream that neutralises whole lines; the start of a line is held back until its end is known."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        self._stream.writelines(workflow.neutral(line) + "\n" for line in lines)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def obey(self, lines: Iterable[str]) -> None:
        """Lines that were rendered for the runner, commands among them."""
        self._stream.writelines(f"{line}\n" for line in lines)

    def finish(self) -> None:
        """Gives out a last line that has no end."""
        self._stream.write(workflow.neutral(self._rest))
        self._rest = ""
        self._stream.flush()


@contextmanager
def guarded() -> Iterator[tuple[Guarded, Guarded]]:
    """Stdout and stderr under guard: the runner reads both."""
    out, err = Guarded(sys.stdout), Guarded(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            yield out, err
        finally:
            out.finish()
            err.finish()
