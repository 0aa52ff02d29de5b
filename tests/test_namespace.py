"""The holder of the mounts: any program can use it at any time, and nothing of it outlives that program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.coordinators import is_gone, wait_until
from support.parts import MERE_USER

from harness import namespace
from harness.errors import EnvironmentProblem
from harness.sandbox.subreaper import Subreaper

ROOT = Path(__file__).parents[1]
# A coordinator: mounts at argv[1], then does what a test adds.
COORDINATOR = """
import os, signal, subprocess, sys, threading
from pathlib import Path
from harness import namespace
place = sys.argv[1]
namespace.mount("tmpfs", place, "size=64k")
Path(namespace.seen(place), "file").write_text("content")
holder = namespace._trees[place].holder.pid
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def mounted(place: Path) -> Iterator[Path]:
    """Something is mounted there for programs of this very process."""
    namespace.mount("tmpfs", str(place), "size=64k")
    yield place
    namespace.unmount(str(place))


def coordinator(place: Path, script: str, *options: str) -> subprocess.Popen[str]:
    """A process without any right of root's."""
    return subprocess.Popen(
        [*MERE_USER, sys.executable, *options, "-c", COORDINATOR + script, str(place)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(place: Path, script: str, *options: str) -> str:
    """What such a process prints; it ends well and warns of nothing."""
    with coordinator(place, script, *options) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return out


def in_namespace(inode: int) -> list[int]:
    """Every process whose mounts are those of the namespace."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "ns" / "mnt").stat().st_ino == inode:
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def test_a_mere_user_mounts_from_any_thread_and_programs_find_it_at_its_path(place: Path) -> None:
    """Other threads were there before; the process itself sees an empty directory, and the file by another way."""
    script = """
stop = threading.Event()
threading.Thread(target=stop.wait).start()
def act():
    namespace.mount("tmpfs", place + "/deeper", "size=64k")
    Path(namespace.seen(place + "/deeper/file")).write_text("deep")
os.mkdir(namespace.seen(place + "/deeper"))
thread = threading.Thread(target=act)
thread.start()
thread.join()
stop.set()
print(os.listdir(place), end=" ", flush=True)
subprocess.run([*namespace.entry(place), "cat", f"{place}/file", f"{place}/deeper/file"], check=True)
"""
    assert said(place, script) == "[] contentdeep"


def test_it_ends_with_a_program_that_ends(place: Path) -> None:
    """Also where warnings are errors: nothing is left for the collector."""
    holder = int(said(place, "print(holder)", "-X", "dev", "-W", "error"))
    assert is_gone(holder)


def test_it_ends_with_a_killed_coordinator_and_takes_the_mounts_along(place: Path) -> None:
    """`kill -9` runs no handler of anybody; the kernel tells the holder."""
    process = coordinator(
        place, "print(holder, os.stat(f'/proc/{holder}/ns/mnt').st_ino, flush=True)\nsys.stdin.read()"
    )
    with process:
        assert process.stdout is not None
        holder, inode = map(int, process.stdout.readline().split())
        assert in_namespace(inode) == [holder]
        process.kill()
    wait_until(lambda: not in_namespace(inode), "the end of the namespace")
    wait_until(lambda: is_gone(holder), "the end of the holder")
    assert list(place.iterdir()) == []


def test_it_ends_with_the_coordinator_although_a_fork_of_that_lives_on(place: Path) -> None:
    """A fork has every descriptor of its parent, and would keep the holder waiting for requests."""
    script = """
if os.fork() == 0:
    assert namespace.seen(place) == place
    sys.stdin.read()
    os._exit(0)
print(holder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with coordinator(place, script) as process:
        assert process.stdout is not None
        holder = int(process.stdout.readline())
        wait_until(lambda: is_gone(holder), "the end of the holder")


def test_signals_for_the_coordinator_leave_it_alone(place: Path) -> None:
    """Ctrl-C goes to a whole group of processes, the stop of a service to all of them."""
    script = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.setpgid(0, 0)
namespace.unmount(place)
namespace.restart()
namespace.mount("tmpfs", place, "size=64k")
holder = namespace._trees[place].holder.pid
os.killpg(0, signal.SIGINT)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    os.kill(holder, number)
namespace.mount("tmpfs", place, "size=64k")
print(namespace.is_mounted(place), os.getpgid(holder) == holder)
"""
    assert said(place, script) == "True True\n"


def test_it_has_no_descriptor_of_the_coordinator(place: Path) -> None:
    """A database that two processes have open loses its locks when one of them closes it."""
    script = """
namespace.unmount(place)
namespace.restart()
database = os.open(place + "/database", os.O_RDWR | os.O_CREAT)
os.set_inheritable(database, True)
namespace.mount("tmpfs", place, "size=64k")
folder = f"/proc/{namespace._trees[place].holder.pid}/fd"
print(sorted({os.readlink(f"{folder}/{name}").split(":")[0] for name in os.listdir(folder)}))
"""
    assert said(place, script) == "['/dev/null', 'anon_inode', 'pipe']\n"


def test_it_is_no_stray_process_of_a_step(mounted: Path) -> None:
    """What a step left behind is killed; the holder is a child of the coordinator, too."""
    holder = namespace._trees[str(mounted)].holder.pid
    assert holder not in {process.pid for process in Subreaper("asked for")._orphaned()}


def test_what_a_dead_holder_held_is_never_taken_for_an_empty_folder(place: Path) -> None:
    """Files and programs are refused with what to do; a new mount goes to a new holder."""
    namespace.mount("tmpfs", str(place), "size=64k")
    holder = namespace._trees[str(place)].holder
    os.kill(holder.pid, signal.SIGKILL)
    wait_until(lambda: holder.ended, "the end of the holder")
    for ask in (namespace.seen, namespace.entry):
        with pytest.raises(EnvironmentProblem, match="the process that holds the mounts has ended") as caught:
            ask(f"{place}/file")
        assert caught.value.hint == "resume the run"
    assert not namespace.is_mounted(str(place))
    namespace.mount("tmpfs", str(place), "size=64k")
    assert namespace.seen(place) != str(place)
    assert namespace.unmount(str(place))
    assert not namespace.unmount(str(place))


def test_a_mount_that_fails_says_why_and_disturbs_no_other(mounted: Path) -> None:
    """The kernel's reason."""
    with pytest.raises(OSError, match="No such device"):
        namespace.mount("no-such-kind", str(mounted), "")
    with pytest.raises(OSError, match="No such file or directory"):
        namespace.mount("tmpfs", f"{mounted}/missing", "")
    assert namespace.is_mounted(str(mounted))


def test_a_path_through_a_link_leads_to_the_same_mount(mounted: Path) -> None:
    """A state home may be a link; tools resolve it."""
    assert namespace.seen(f"{mounted}/a") == namespace.seen(mounted.resolve() / "a")
    link = mounted.parent / "link"
    link.symlink_to(mounted.parent)
    through = link / "other"
    through.mkdir()
    namespace.mount("tmpfs", str(through), "size=64k")
    assert Path(namespace.seen(mounted.parent / "other")).samefile(namespace.seen(through))
    assert namespace.unmount(str(through))
    assert namespace.seen(mounted.parent / "other") == str(mounted.parent / "other")


def test_the_path_for_programs_is_told_from_the_way_to_it(mounted: Path) -> None:
    """Also where the number of another descriptor begins with that of the holder's."""
    way = namespace.seen(mounted / "file")
    assert namespace.named(way) == str(mounted / "file")
    number = way.split("/")[4]
    other = way.replace(f"/fd/{number}/", f"/fd/{number}9/", 1)
    assert namespace.named(other) == other
