"""Forks command lines of the harness from a process that has everything imported, with strace attached on request.

One JSON line in, one out: `{argv, cwd, env, out, err, trace}` becomes `{code}`. A fault then hits the harness and not
the start of the interpreter, and a sweep does not pay for that start a thousand times. Children are let go when they
become another program.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from typing import Any

_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)
_NOT_ATTACHED = 99
_LEFT_OUT = ("harness.supervisor", "harness.__main__")


def _import_everything() -> None:
    import harness  # noqa: PLC0415 - found through the PYTHONPATH that the rig gives

    for module in pkgutil.walk_packages(harness.__path__, "harness."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)


def _attach(options: list[str]) -> None:
    """Returns when strace is there; what is needed to see that is opened before, so that no fault hits it."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
    status = os.open("/proc/self/status", os.O_RDONLY)
    tracer = subprocess.Popen(
        ["strace", "-f", "-y", "-qq", "-b", "execve", "-s", "1", *options, "-p", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while b"TracerPid:\t0\n" in os.pread(status, 4096, 0):
        if tracer.poll() is not None:
            os._exit(_NOT_ATTACHED)
        time.sleep(0.002)
    os.close(status)


def _become(order: dict[str, Any]) -> int:
    from harness.cli import app  # noqa: PLC0415 - as above

    os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for handle, name in ((1, order["out"]), (2, order["err"])):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), handle)
    if order["trace"]:
        _attach(order["trace"])
    return app.run(order["argv"])


def main() -> None:
    _import_everything()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.exit(_become(json.loads(line)))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
