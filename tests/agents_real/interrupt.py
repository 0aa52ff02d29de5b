"""A run of real programs that is interrupted while one of them is at work."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.sandbox.survivors import kill_marked, marked
from tests.support.workbench import Workbench

_SHELLS = {"sh", "bash", "dash"}
_BEGIN_S = 120
_END_S = 60


def tool_runs(word: str) -> bool:
    """Whether a shell carries the word: the program itself may, too, in its prompt."""
    return any(_name(pid) in _SHELLS for pid in marked(word))


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def leaves_nothing(bench: Workbench, step: dict[str, Any], word: str, is_at_work: Callable[[], bool]) -> None:
    """Ctrl-C once the step is at work: the exit code says so, and nothing that carries the word is left."""
    running = bench.process("run", str(bench.plan(step)), "--json")
    try:
        end = time.monotonic() + _BEGIN_S
        while not is_at_work():
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < end, "the program did not begin"
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=_END_S)
        assert running.returncode == 130, out + err
        assert marked(word) == []
    finally:
        running.kill()
        running.wait()
        kill_marked(word)
