"""Hostile programs as agents of a whole run: nobody survives, the verdict is right, the coordinator stays small."""

from __future__ import annotations

import json
import os
import secrets
import sys
from typing import Any, NamedTuple

import pytest
from sandbox.survivors import kill_marked, marked
from support.checker import check, fingerprint
from support.workbench import Workbench, shell, write

from harness.model import limits


class Beast(NamedTuple):
    script: str
    reason: str
    fields: dict[str, Any] = {}  # noqa: RUF012 - read only


ZOO = {
    "stops itself": Beast("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout", {"timeout": "600ms"}),
    "ignores TERM": Beast(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)",
        "inactivity_timeout",
        {"inactivity_timeout": "600ms"},
    ),
    "leaves a daemon": Beast(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)",
        "merged",
    ),
    "daemon that goes on writing": Beast(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        while True: open('late.txt', 'a').write('late'); time.sleep(0.01)\n    os._exit(0)",
        "merged",
    ),
    "holds stdout": Beast("import os, time\nif os.fork() == 0: time.sleep(600)", "merged"),
    "forks a storm": Beast(
        "import os, time\nfor _ in range(150):\n    if os.fork() == 0:\n        os.setsid(); os.fork(); time.sleep(600)\n"
        "time.sleep(600)",
        "timeout",
        {"timeout": "1500ms"},
    ),
}


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("name", ZOO)
def test_a_hostile_process_leaves_nobody_and_the_run_goes_on(bench: Workbench, name: str, sandbox: str) -> None:
    """Its step gets the verdict that it deserves, the step beside it is merged, the parent is untouched."""
    beast, mark = ZOO[name], f"beast-{secrets.token_hex(8)}"
    before = fingerprint(bench.files)
    work = "open('mine.txt', 'w').write('mine')\n"
    command = [sys.executable, "-I", "-S", "-c", work + beast.script, mark]
    step = {"title": name, "command": command, "owns": ["mine.txt", "late.txt"], **beast.fields}
    try:
        done = bench.run(step, write("calm.txt", "calm\n"), flags=("--sandbox", sandbox, "-j", "2"))
        assert marked(mark) == []
    finally:
        kill_marked(mark)
    assert done.reasons == [beast.reason, "merged"], done.out
    assert bench.tree(done.data["head"])["calm.txt"] == "calm"
    assert ("mine.txt" in bench.tree(done.data["head"])) == (beast.reason == "merged")
    assert (done.steps[0]["kept_ref"] is None) == (beast.reason == "merged")
    assert check(bench.files, before=before) == []


def _talk(bench: Workbench, sandbox: str, size: int) -> int:
    """Runs a step that prints so much; the peak memory in KiB of the coordinator, or of whom it waited for."""
    plan = bench.plan(shell(f"echo 1 > c.txt; head -c {size} /dev/zero", owns=["c.txt"]))
    process = bench.process("run", str(plan), "--json", "--sandbox", sandbox)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.communicate()
    assert process.returncode == 0, out
    log = bench.files / f".orchestrix/local/runs/{json.loads(out)['data']['run_id']}/logs/step-0-attempt-1.log"
    kept = log.read_bytes()
    left_out = size - limits.OUTPUT_HEAD_BYTES - limits.OUTPUT_TAIL_BYTES
    assert (f"[... {left_out} bytes left out ...]".encode() in kept) == (left_out > 0)
    assert len(kept) < limits.OUTPUT_HEAD_BYTES + limits.OUTPUT_TAIL_BYTES + limits.KIB
    return usage.ru_maxrss


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("size", [10**9, pytest.param(10**10, marks=pytest.mark.sweep)], ids=["1 GB", "10 GB"])
def test_endless_output_leaves_the_coordinator_small(bench: Workbench, sandbox: str, size: int) -> None:
    """Head and tail are kept and the cut is marked; memory is that of a run that printed a line."""
    quiet = _talk(bench, sandbox, 10)
    assert _talk(bench, sandbox, size) - quiet < 32 * limits.KIB
    assert check(bench.files) == []
