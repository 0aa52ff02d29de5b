"""A coroutine runs on a loop that fails as plainly as it works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engine import event_loop

ROOT = Path(__file__).parents[2]
# Descriptors of a loop: one of its selector, two of its pair of sockets; signals add a pipe.
_PROGRAM = """
import os, resource, sys
from harness.engine import {module}
async def answer(): return "ran"
free = os.dup(0); os.close(free)
most = free + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
try:
    print({module}.run(answer()))
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize(("module", "needed"), [("event_loop", 3), ("signals", 5)])
def test_a_loop_without_its_descriptors_fails_with_one_error(module: str, needed: int) -> None:
    """Whichever of its descriptors is missing: no coroutine is left unawaited, and no finalizer prints a traceback."""
    told = []
    for more in range(needed + 1):
        argv = [sys.executable, "-W", "always", "-c", _PROGRAM.format(module=module), str(more)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), more
        told.append(done.stdout.strip())
    assert told == ["Too many open files"] * needed + ["ran"]


def test_a_coroutine_runs_to_its_end_and_its_error_comes_out() -> None:
    """The loop changes nothing about what the coroutine returns or raises."""

    async def answer(*, fails: bool) -> str:
        if fails:
            raise ValueError("refused")
        return "ran"

    assert event_loop.run(answer(fails=False)) == "ran"
    with pytest.raises(ValueError, match="refused"):
        event_loop.run(answer(fails=True))
