"""Runs a coroutine to its end; one that could not start leaves an error behind, and nothing on stderr."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from contextlib import closing
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`; raises OSError when there are too few descriptors for a loop, and closes `main` then."""
    with closing(main), asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


class _Loop(asyncio.SelectorEventLoop):
    """Counts as closed until it is whole.

    asyncio makes the selector first and a pair of sockets next. When these fail, its finalizer closes sockets that are not
    there, and prints the AttributeError.
    """

    _whole = False

    def __init__(self) -> None:
        selector = selectors.DefaultSelector()
        try:
            super().__init__(selector)
        except BaseException:
            selector.close()
            raise
        self._whole = True

    def is_closed(self) -> bool:
        return not self._whole or super().is_closed()
