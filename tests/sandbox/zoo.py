"""Hostile programs, each one attack on the door; `sys.argv[1]` is the marker that survivors are found by."""

from __future__ import annotations

from typing import Any, NamedTuple

from harness.model.process import Ending


class Beast(NamedTuple):
    script: str
    endings: dict[str, tuple[Ending, int]]
    options: dict[str, Any] = {}  # noqa: RUF012 - read only


def _same(ending: Ending, code: int) -> dict[str, tuple[Ending, int]]:
    return {"bwrap": (ending, code), "subreaper": (ending, code)}


_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
"""

ZOO = {
    "stops itself": Beast(
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        _same(Ending.TIMEOUT, 143),
        {"timeout_ms": 400},
    ),
    "ignores TERM": Beast(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
        _same(Ending.INACTIVITY, 137),
        {"inactivity_ms": 500},
    ),
    "leaves a daemon": Beast(f"{_DAEMON}\nprint('done')", _same(Ending.EXITED, 0)),
    "leaves a daemon without environment that ignores TERM": Beast(
        "import os, sys\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    code = 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)'\n"
        "    os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', code, sys.argv[1]], {})\n",
        _same(Ending.EXITED, 0),
    ),
    "holds stdout open": Beast("import os, time\nif os.fork() == 0:\n    time.sleep(600)", _same(Ending.EXITED, 0)),
    "forks a storm": Beast(
        "import os, time\n"
        "for _ in range(200):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "        os._exit(0)\n"
        "time.sleep(600)",
        _same(Ending.TIMEOUT, 143),
        {"timeout_ms": 1500},
    ),
    "forks faster than it is killed": Beast(
        "import os, time\nfor _ in range(3000):\n    if os.fork() != 0: os._exit(0)\n    os.setsid()\ntime.sleep(600)",
        _same(Ending.EXITED, 0),
    ),
    "never reads its stdin": Beast("pass", _same(Ending.EXITED, 0), {"stdin": b"x" * 10_000_000}),
    "closes its output early": Beast(
        "import os, time; os.close(1); os.close(2); time.sleep(0.1)", _same(Ending.EXITED, 0)
    ),
    "kills its parent": Beast(
        f"{_DAEMON}\nimport signal\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)",
        {"bwrap": (Ending.TIMEOUT, 143), "subreaper": (Ending.EXITED, 137)},
        {"timeout_ms": 1500},
    ),
    "stops its parent": Beast(
        f"{_DAEMON}\nimport signal\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)",
        _same(Ending.TIMEOUT, 143),
        {"timeout_ms": 1500},
    ),
    "kills everyone it may": Beast(
        f"{_DAEMON}\nimport signal\nos.kill(0, signal.SIGKILL)",
        _same(Ending.EXITED, 137),
    ),
}
