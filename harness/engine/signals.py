"""Signals: the first one asks the run to stop in order, the second one does not wait.

They are heard by a thread of their own: the main thread may be in a call that does not return for long, such as an append
to a database that another process has locked.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from harness.engine import event_loop
from harness.errors import Exit, Interrupted

T = TypeVar("T")
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end; a signal cancels it and becomes Interrupted with exit 130 or 143."""
    ears = _Ears()
    with closing(main), _heard(ears):
        return event_loop.run(_guarded(main, ears))


class _Ears:
    """The signals so far, and what the first one does once there is something to stop."""

    def __init__(self) -> None:
        self.received: list[signal.Signals] = []
        self._stop: Callable[[], object] | None = None
        self._lock = threading.Lock()

    def on_first(self, stop: Callable[[], object]) -> None:
        with self._lock:
            self._stop = stop
            if self.received:
                stop()

    def hear(self, number: signal.Signals) -> None:
        with self._lock:
            self.received.append(number)
            if len(self.received) > 1:
                # Children die with this process (the sandbox sees to it); the log already says how far the run came.
                os._exit(_status(number))
            if self._stop is not None:
                self._stop()


@contextmanager
def _heard(ears: _Ears) -> Iterator[None]:
    """While the body runs, every handled signal reaches `ears`, whatever the main thread does.

    In another thread than the main one nothing is heard: the signals are those of the program that started it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    fd_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in _HANDLED}
    thread = threading.Thread(target=_listen, args=(reading, ears), name="signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(fd_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        thread.join()
        os.close(reading)


def _listen(reading: int, ears: _Ears) -> None:
    while numbers := os.read(reading, 64):
        for number in numbers:
            if number in _HANDLED:
                ears.hear(signal.Signals(number))


async def _guarded(main: Coroutine[Any, Any, T], ears: _Ears) -> T:
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)

    def stop() -> None:
        if not loop.is_closed():  # it has come to its end meanwhile
            loop.call_soon_threadsafe(task.cancel)

    ears.on_first(stop)
    try:
        return await task
    except asyncio.CancelledError:
        if not ears.received:
            raise
        error = Interrupted(
            f"stopped by {ears.received[0].name}; nothing is lost", hint="orchestrix resume carries on from here"
        )
        error.exit_code = _status(ears.received[0])
        raise error from None


def _status(number: signal.Signals) -> int:
    return Exit.SIGINT if number is signal.SIGINT else Exit.SIGTERM
