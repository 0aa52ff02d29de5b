"""What every door promises; each claim is shown for bwrap and for the subreaper."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.model.process import Ending, ProcessLimits
from harness.sandbox import identity
from tests.sandbox.survivors import marked, wait_for_marked
from tests.sandbox.zoo import ZOO

ROOT = str(Path(__file__).resolve().parents[2])


def test_a_program_gets_arguments_stdin_directory_and_environment(door, bench) -> None:
    """Nothing more and nothing less reaches the program than the spec says."""
    script = "import os, sys; print(sys.argv[1:], sys.stdin.read(), os.getcwd(), sorted(os.environ), os.environ['A'])"
    spec = bench.python(script, "a b", "*", stdin=b"given", env={"A": "x\ny", "PATH": os.environ["PATH"]})
    result = asyncio.run(bench.run(door, spec))
    extra = {"bwrap": ["PWD", "TMPDIR"], "subreaper": []}[door.name]
    names = sorted(["A", "PATH", *extra, *(["LC_CTYPE"] if "'LC_CTYPE'" in result.output_tail else [])])
    assert result.output_tail == f"['a b', '*'] given {bench.workspace} {names} x\ny\n"
    assert (result.ending, result.exit_code, result.sandbox) == (Ending.EXITED, 0, door.name)
    assert result.output_bytes == len(result.output_tail)


def test_only_the_three_standard_descriptors_are_inherited(door, bench) -> None:
    """No database, lock, socket or log of the coordinator is open in the program."""
    with bench.log.open("ab"):
        script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
        result = asyncio.run(bench.run(door, bench.python(script)))
    assert result.output_tail == "[0, 1, 2]\n"


def test_stdout_and_stderr_arrive_in_one_log_in_their_order(door, bench) -> None:
    """A log reads as a terminal would have shown it, and a second program appends."""
    asyncio.run(bench.run(door, bench.spec("sh", "-c", "echo one; echo two >&2; echo three")))
    asyncio.run(bench.run(door, bench.spec("echo", "four")))
    assert bench.log.read_text() == "one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_exit_codes_are_those_a_shell_would_show(door, bench, command, code) -> None:
    """An end by signal n is 128 + n."""
    result = asyncio.run(bench.run(door, bench.spec("sh", "-c", command)))
    assert (result.ending, result.exit_code, result.ok) == (Ending.EXITED, code, False)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("no-such-program-here",), "program 'no-such-program-here' was not found or is not executable"),
        (("./missing.sh",), "program './missing.sh' was not found or is not executable"),
        (("echo", "a\0b"), "'echo': an argument or environment value holds a NUL character"),
        (("echo", "x" * 4_000_000), "echo: the argument list is too long for the system"),
        ((), "the argument list is empty"),
    ],
)
def test_what_cannot_start_says_so(bwrap, bench, argv, message) -> None:
    """A program that can never start is a result, not a crash."""
    result = asyncio.run(bench.run(bwrap, bench.spec(*argv)))
    assert (result.ending, result.exit_code, result.message) == (Ending.NOT_FOUND, None, message)
    assert bench.started == []


def test_a_program_is_looked_for_again_when_it_is_no_longer_where_it_was(door, bench, tmp_path) -> None:
    """Found once is not found for ever: the next place on the path counts, then none."""
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        place.mkdir()
        (place / "own-program").write_text(f"#!/bin/sh\necho {place.name}\n")
        (place / "own-program").chmod(0o755)
    spec = bench.spec("own-program", env={"PATH": ":".join(map(str, places))})
    said = []
    for place in places:
        said.append(asyncio.run(bench.run(door, spec)).output_tail)
        (place / "own-program").unlink()
    assert said == ["first\n", "second\n"]
    assert asyncio.run(bench.run(door, spec)).ending is Ending.NOT_FOUND


def test_an_argument_list_that_only_the_reaper_could_take_still_ends(bench) -> None:
    """The subreaper passes arguments by a file: what the system refuses comes back as exit code 126."""
    from harness.sandbox import choice  # noqa: PLC0415 - one test needs exactly this door

    result = asyncio.run(bench.run(choice.choose("none"), bench.spec("echo", "x" * 4_000_000)))
    assert (result.ending, result.exit_code) == (Ending.EXITED, 126)
    assert result.output_tail == "echo: Argument list too long\n"


def test_a_missing_directory_is_an_environment_problem(door, bench, tmp_path) -> None:
    """The workspace is the harness' own to make."""
    with pytest.raises(EnvironmentProblem, match="is missing"):
        asyncio.run(bench.run(door, bench.spec("true", cwd=tmp_path / "gone")))


def test_a_full_disk_under_the_log_ends_the_tree_and_is_told(door, bench, marker) -> None:
    """Output that cannot be kept stops the program; nothing of it survives."""
    spec = bench.python("import time; print('x', flush=True); time.sleep(600)", marker, log=Path("/dev/full"))
    with pytest.raises(EnvironmentProblem, match="the log /dev/full cannot be written: No space left on device"):
        asyncio.run(bench.run(door, spec))
    assert marked(marker) == []


def test_a_log_that_is_a_link_is_refused(door, bench, tmp_path) -> None:
    """A planted link cannot redirect output over another file."""
    bench.log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        asyncio.run(bench.run(door, bench.spec("echo", "x")))
    assert not (tmp_path / "elsewhere").exists()


def test_the_identity_is_told_before_the_program_runs(door, bench) -> None:
    """Intent before effect: a refused start leaves no trace of the program."""

    def refuse(who) -> None:
        assert identity.alive(who)
        raise RuntimeError("the store is gone")

    with pytest.raises(RuntimeError, match="the store is gone"):
        asyncio.run(door.run(bench.spec("touch", "ran"), on_start=refuse))
    assert list(bench.workspace.iterdir()) == []


@pytest.mark.parametrize("name", ZOO)
def test_nothing_of_a_hostile_program_survives(door, bench, marker, quick_grace, name) -> None:
    """Whatever it does to itself, its parents or its children, the verdict is right and nobody is left."""
    beast = ZOO[name]
    result = asyncio.run(bench.run(door, bench.python(beast.script, marker, **beast.options)))
    assert (result.ending, result.exit_code) == beast.endings[door.name]
    assert marked(marker) == []


def test_no_daemon_slips_through_while_its_parent_ends(door, bench, marker) -> None:
    """A listing of processes misses one whose parent ends meanwhile; on a busy machine that happens often."""

    async def scene() -> None:
        for _ in range(6):
            specs = [
                bench.python(ZOO["leaves a daemon"].script, marker, log=bench.log.with_suffix(f".{number}"))
                for number in range(8)
            ]
            results = await asyncio.gather(*[bench.run(door, spec) for spec in specs])
            assert [result.exit_code for result in results] == [0] * 8
            assert marked(marker) == []

    asyncio.run(scene())


def test_a_steady_talker_is_not_inactive(door, bench) -> None:
    """Only silence counts as inactivity."""
    script = "import time\nfor n in range(6):\n    print(n, flush=True); time.sleep(0.1)"
    result = asyncio.run(bench.run(door, bench.python(script, inactivity_ms=2_000)))
    assert result.ok


def test_cancelling_ends_the_tree_before_it_returns(door, bench, marker, quick_grace) -> None:
    """A second cancellation does not let anything escape either."""

    async def scene() -> None:
        script = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.fork(); time.sleep(600)"
        task = asyncio.ensure_future(bench.run(door, bench.python(script, marker)))
        await asyncio.to_thread(wait_for_marked, marker, 2)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert marked(marker) == []

    asyncio.run(scene())


_COORDINATOR = """
import asyncio, os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from harness.errors import EnvironmentProblem
from harness.model.process import ProcessSpec
from harness.sandbox.choice import choose
door, workspace, marker, handles = choose(sys.argv[2]), sys.argv[3], sys.argv[4], []
script = "import os, time\\nif os.fork() == 0:\\n    os.setsid()\\n    os.fork()\\ntime.sleep(600)"
def spec(timeout_ms):
    return ProcessSpec(
        argv=(sys.executable, "-I", "-S", "-c", script, marker), cwd=Path(workspace),
        env={"PATH": os.environ["PATH"]}, log=Path(workspace + ".log"), timeout_ms=timeout_ms,
    )
def exhaust(who=None):
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    try:
        while True: handles.append(os.open("/dev/null", os.O_RDONLY))
    except OSError: pass
"""


def test_killing_the_coordinator_kills_its_children(door, bench, marker) -> None:
    """kill -9 of the parent leaves no process of a step behind, daemons included."""
    mode = {"bwrap": "bwrap", "subreaper": "none"}[door.name]
    then = "asyncio.run(door.run(spec(600_000), on_start=lambda who: print(who.pid, flush=True)))"
    argv = [sys.executable, "-c", _COORDINATOR + then, ROOT, mode, str(bench.workspace), marker]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as coordinator:
        outer = int(coordinator.stdout.readline())
        wait_for_marked(marker, 4)
        who = identity.probe(outer)
        coordinator.send_signal(signal.SIGKILL)
        coordinator.wait()
    wait_for_marked(marker, 0)
    while identity.alive(who):
        time.sleep(0.01)


def test_a_coordinator_without_descriptors_still_ends_its_children(door, bench, marker) -> None:
    """Everything that killing needs is opened before the program starts; a start without descriptors is told."""
    mode = {"bwrap": "bwrap", "subreaper": "none"}[door.name]
    then = """
async def scene():
    print((await door.run(spec(1_000), on_start=exhaust)).ending)
    for free in range(40):
        for _ in range(free): os.close(handles.pop())
        try:
            return print((await door.run(spec(300), on_start=lambda who: None)).ending)
        except EnvironmentProblem as error:
            assert "Too many open files" in str(error), error
        exhaust()
asyncio.run(scene())
"""
    argv = [sys.executable, "-W", "error", "-c", _COORDINATOR + then, ROOT, mode, str(bench.workspace), marker]
    done = subprocess.run(argv, capture_output=True, check=False, text=True)
    assert (done.stdout, done.stderr) == ("timeout\ntimeout\n", "")
    assert marked(marker) == []


def test_much_output_leaves_memory_flat_and_the_log_bounded(door, bench) -> None:
    """300 MB come, 2 MiB and a line that says so stay."""
    kept = ProcessLimits(output_head=limits.MIB, output_tail=limits.MIB)
    script = "import os\nfor n in range(300): os.write(1, (b'%07d\\n' % n) * 125_000)"
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_kib()
    result = asyncio.run(bench.run(door, bench.python(script, limits=kept)))
    assert _peak_kib() - before < 32 * 1024
    assert (result.ok, result.output_bytes, result.truncated) == (True, 300_000_000, True)
    line = f"\n[... {300_000_000 - 2 * limits.MIB} bytes left out ...]\n".encode()
    log = bench.log.read_bytes()
    assert log == (b"0000000\n" * 125_000 + b"0000001\n" * 6_072) + line + b"0000298\n" * 6_072 + b"0000299\n" * 125_000
    assert result.output_tail == "0000299\n" * (limits.TOOL_OUTPUT_CHARS // 8)


def _peak_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def test_file_size_and_core_dumps_are_limited(door, bench) -> None:
    """The kernel ends a program that writes a file larger than the step may."""
    bounds = ProcessLimits(file_bytes=65_536)
    script = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('big', 'wb').write(b'x' * 100_000)"
    result = asyncio.run(bench.run(door, bench.python(script, limits=bounds)))
    assert result.exit_code == 128 + signal.SIGXFSZ
    assert [entry.name for entry in bench.workspace.iterdir()] == ["big"]
    assert (bench.workspace / "big").stat().st_size == 65_536


def test_a_tree_that_grows_too_large_is_ended(door, bench, marker, quick_grace) -> None:
    """Also root's: the kernel's own limit does not bind it."""
    script = (
        "import os, time\nfor _ in range(60):\n    try:\n        if os.fork() == 0: time.sleep(600)\n"
        "    except OSError: pass\ntime.sleep(600)"
    )
    result = asyncio.run(bench.run(door, bench.python(script, marker, limits=ProcessLimits(processes=30))))
    assert (result.ending, result.message) == (Ending.LIMIT, "it had more than 30 processes")
    assert marked(marker) == []


def test_many_run_at_once_and_one_that_kills_its_parent_harms_no_other(door, bench, marker, quick_grace) -> None:
    """Sixteen neighbours, one of them hostile: the others end as they would have alone."""

    async def scene() -> list[object]:
        hostile = ZOO["kills its parent"]
        runs = [bench.run(door, bench.python(hostile.script, marker, **hostile.options))]
        for number in range(15):
            spec = bench.python(
                "import time; time.sleep(0.7); print('calm')", marker, log=bench.log.with_suffix(f".{number}")
            )
            runs.append(bench.run(door, spec))
        return await asyncio.gather(*runs)

    results = asyncio.run(scene())
    assert [result.output_tail for result in results[1:]] == ["calm\n"] * 15
    assert marked(marker) == []
