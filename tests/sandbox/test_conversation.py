"""What every door promises of a program that is talked with; each claim is shown for bwrap and for the subreaper."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import EnvironmentProblem, StoreFailed
from harness.model import limits
from harness.model.process import Ending
from harness.sandbox import identity
from tests.sandbox.survivors import marked, wait_for_marked

ROOT = str(Path(__file__).resolve().parents[2])
_ECHO = "import sys\nfor line in sys.stdin:\n    print(line.upper(), end='', flush=True)\nprint('bye', flush=True)"
_STUBBORN = """
import os, signal, sys, time
signal.signal(15, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    time.sleep(600)  # it says nothing: the words of one of the two end the conversation, and the other's pipe breaks
print('ready', flush=True)
time.sleep(600)
"""


def _run(door, bench, spec, talk):
    return asyncio.run(door.run(spec, on_start=bench.started.append, talk=talk))


def test_a_program_hears_and_is_heard_while_it_runs(door, bench) -> None:
    """Both directions, line by line; what goes to stderr and what is noted stands in the log."""
    heard = []

    async def talk(channel) -> None:
        for word in (b"one\n", b"two\n"):
            channel.writer.write(word)
            heard.append(await channel.reader.readline())
            channel.note(f"said {word.decode()}")
        channel.writer.write_eof()
        heard.append(await channel.reader.readline())
        heard.append(await channel.reader.read())

    script = "import sys; print('begins', file=sys.stderr, flush=True)\n" + _ECHO
    result = _run(door, bench, bench.python(script), talk)
    assert heard == [b"ONE\n", b"TWO\n", b"bye\n", b""]
    assert (result.ending in {Ending.EXITED, Ending.ANSWERED}, result.sandbox) == (True, door.name)
    assert sorted(bench.log.read_text().splitlines()) == ["begins", "said one", "said two"]


def test_a_program_is_ended_when_the_conversation_is_over(door, bench, marker, quick_grace) -> None:
    """The result is what was said, not an exit: nobody waits for a program that lingers, nor for its children."""

    async def talk(channel) -> None:
        assert await channel.reader.readline() == b"ready\n"

    result = _run(door, bench, bench.python(_STUBBORN, marker), talk)
    assert (result.ending, result.exit_code, result.ok) == (Ending.ANSWERED, None, False)
    assert marked(marker) == []


def test_last_words_are_heard_after_the_exit(door, bench, monkeypatch) -> None:
    """A program that answers and exits at once has answered, however much it said, and its exit code is known."""
    monkeypatch.setattr(limits, "DRAIN_MS", 30_000)
    heard = []

    async def talk(channel) -> None:
        heard.append(await channel.reader.read())

    result = _run(door, bench, bench.python("import sys; sys.stdout.write('x' * 3_000_000); sys.exit(7)"), talk)
    assert (result.ending, result.exit_code) == (Ending.EXITED, 7)
    assert heard == [b"x" * 3_000_000]


def test_a_conversation_that_does_not_notice_the_end_is_ended(door, bench, quick_grace) -> None:
    """An exit cannot leave the coordinator waiting."""
    ended = []

    async def talk(channel) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    result = _run(door, bench, bench.python("raise SystemExit(3)"), talk)
    assert (result.ending, result.exit_code, ended) == (Ending.EXITED, 3, [True])


@pytest.mark.parametrize(
    ("options", "ending"), [({"timeout_ms": 1_500}, Ending.TIMEOUT), ({"inactivity_ms": 1_000}, Ending.INACTIVITY)]
)
def test_limits_bind_and_the_last_word_still_reaches_the_program(door, bench, marker, options, ending) -> None:
    """The conversation is cancelled first, so that it can say goodbye to a program that is still there."""
    script = "import sys, time; print('ready', flush=True); print(sys.stdin.readline(), flush=True); time.sleep(600)"
    heard = []

    async def talk(channel) -> None:
        heard.append(await channel.reader.readline())
        try:
            await channel.reader.readline()
        except asyncio.CancelledError:
            channel.writer.write(b"stop\n")
            heard.append(await channel.reader.readline())
            raise

    result = _run(door, bench, bench.python(script, marker, **options), talk)
    assert (result.ending, heard) == (ending, [b"ready\n", b"stop\n"])
    assert marked(marker) == []


def test_what_is_said_counts_as_activity(door, bench) -> None:
    """A talker is not silent, even if nothing of it is printed."""
    script = "import time\nfor n in range(8):\n    print(n, flush=True); time.sleep(0.2)"
    heard = []

    async def talk(channel) -> None:
        heard.append(await channel.reader.read())

    result = _run(door, bench, bench.python(script, inactivity_ms=1_200), talk)
    assert result.ending in {Ending.EXITED, Ending.ANSWERED}
    assert heard == [b"0\n1\n2\n3\n4\n5\n6\n7\n"]


def test_cancelling_ends_program_and_conversation(door, bench, marker, quick_grace) -> None:
    """Also when the cancellation comes twice and the program ignores signals."""
    ended = []
    began = asyncio.Event()

    async def talk(channel) -> None:
        began.set()
        try:
            await channel.reader.read()
        finally:
            ended.append(True)

    async def scene() -> None:
        spec = bench.python(_STUBBORN, marker)
        task = asyncio.ensure_future(door.run(spec, on_start=bench.started.append, talk=talk))
        await asyncio.to_thread(wait_for_marked, marker, 2)
        await began.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (marked(marker), ended) == ([], [True])

    asyncio.run(scene())


def test_an_error_of_the_conversation_is_raised_when_the_tree_is_gone(door, bench, marker, quick_grace) -> None:
    """A store that fails in the middle of a talk stops the run; the program does not go on without us."""

    async def talk(channel) -> None:
        await channel.reader.readline()
        raise StoreFailed("the store is gone")

    with pytest.raises(StoreFailed, match="the store is gone"):
        _run(door, bench, bench.python(_STUBBORN, marker), talk)
    assert marked(marker) == []


def test_a_refused_start_leaves_no_conversation(door, bench) -> None:
    """Intent before effect: neither the program nor the talk begins."""
    begun = []

    async def talk(channel) -> None:
        begun.append(channel)

    def refuse(who) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(door.run(bench.spec("touch", "ran"), on_start=refuse, talk=talk))
    assert (begun, list(bench.workspace.iterdir())) == ([], [])


def test_a_program_that_cannot_start_is_not_talked_with(bwrap, bench) -> None:
    """A result, not a crash, and no socket is left open."""

    async def talk(channel) -> None:
        raise AssertionError("nobody is there")

    missing = _run(bwrap, bench, bench.spec("no-such-program-here"), talk)
    long = _run(bwrap, bench, bench.spec("echo", "x" * 4_000_000), talk)
    assert [missing.ending, long.ending] == [Ending.NOT_FOUND, Ending.NOT_FOUND]


def test_a_log_that_cannot_be_kept_ends_the_conversation(door, bench, marker, quick_grace) -> None:
    """A note is output: a full disk under the log stops program and talk."""

    async def talk(channel) -> None:
        channel.note("something")
        await channel.reader.read()

    spec = bench.python("import time; time.sleep(600)", marker, log=Path("/dev/full"))
    with pytest.raises(EnvironmentProblem, match="the log /dev/full cannot be written"):
        _run(door, bench, spec, talk)
    assert marked(marker) == []


def test_a_message_that_never_ends_is_held_back(door, bench, monkeypatch, quick_grace) -> None:
    """The program waits once twice the limit is unread: memory stays bounded."""
    monkeypatch.setattr(limits, "MESSAGE_BYTES", 100_000)
    seen = []

    async def talk(channel) -> None:
        with contextlib.suppress(asyncio.LimitOverrunError):
            await channel.reader.readuntil(b"\n")
        seen.append(len(channel.reader._buffer))

    script = "import os\nwhile True: os.write(1, b'x' * 65_536)"
    _run(door, bench, bench.python(script), talk)
    assert seen[0] <= 2 * 100_000 + 256 * 1024


_COORDINATOR = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from harness.model.process import ProcessSpec
from harness.sandbox.choice import choose
spec = ProcessSpec(
    argv=(sys.executable, "-I", "-S", "-c", sys.argv[5], sys.argv[4]), cwd=Path(sys.argv[3]),
    env={"PATH": os.environ["PATH"]}, log=Path(sys.argv[3] + ".log"), timeout_ms=600_000,
)
async def talk(channel):
    await channel.reader.read()
asyncio.run(choose(sys.argv[2]).run(spec, on_start=lambda who: print(who.pid, flush=True), talk=talk))
"""


def test_killing_the_coordinator_kills_those_it_talks_with(door, bench, marker) -> None:
    """kill -9 in the middle of a conversation leaves nobody behind."""
    mode = {"bwrap": "bwrap", "subreaper": "none"}[door.name]
    argv = [sys.executable, "-c", _COORDINATOR, ROOT, mode, str(bench.workspace), marker, _STUBBORN]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as coordinator:
        outer = int(coordinator.stdout.readline())
        wait_for_marked(marker, 2)
        who = identity.probe(outer)
        os.kill(coordinator.pid, signal.SIGKILL)
        coordinator.wait()
    wait_for_marked(marker, 0)
    assert who is not None
