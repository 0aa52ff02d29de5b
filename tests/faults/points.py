"""Where a fault can be put: system calls of an undisturbed run that touch the repository, the log or a workspace."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.stage import Stage
from support.workbench import Result

_WRITING = ("ENOSPC", "EIO")
ERRORS = {
    "write": _WRITING,
    "pwrite64": _WRITING,
    "fsync": ("EIO",),
    "fdatasync": ("EIO", "ENOSPC"),
    "ftruncate": _WRITING,
    "openat": ("EMFILE", "EIO", "EROFS", "ENOSPC"),
    "rename": ("ENOSPC", "EROFS", "EIO"),
    "renameat": ("ENOSPC", "EROFS"),
    "renameat2": ("ENOSPC", "EROFS"),
    "link": ("ENOSPC", "EIO"),
    "mkdir": ("ENOSPC", "EROFS"),
    "unlink": ("EROFS", "EIO"),
    "unlinkat": ("EROFS", "EIO"),
    "rmdir": ("EIO",),
}
SYSCALLS = ",".join(ERRORS)
_CALL = re.compile(r"(\d+) +(\w+)\(")
_SHIM = Path(__file__).with_name("traced_git.sh")


@dataclass(frozen=True, order=True)
class Fault:
    """The `number`-th call of `syscall` goes wrong: in the coordinator's threads, or in its `git`-th call of git."""

    git: int
    syscall: str
    number: int
    how: str

    @property
    def injection(self) -> str:
        what = "signal=SIGKILL" if self.how == "kill" else f"error={self.how}"
        return f"{self.syscall}:{what}:when={self.number}"

    def play(self, stage: Stage) -> Result:
        """The run, with this fault in it."""
        if not self.git:
            trace = ["-o", str(stage.root / "hit"), "-e", f"trace={self.syscall}", "-e", f"inject={self.injection}"]
            return stage.call(*stage.run_arguments, trace=trace)
        surroundings = _shim(stage, call=str(self.git), syscalls=self.syscall)
        return stage.call(*stage.run_arguments, **surroundings, FAULT_INJECTION=self.injection)


def in_coordinator(stage: Stage) -> list[Fault]:
    """Every place in the coordinator's own threads."""
    log = stage.root / "trace"
    assert stage.call(*stage.run_arguments, trace=["-o", str(log), "-e", f"trace={SYSCALLS}"]).code == 0
    return sorted(set(_faults(0, _places(log, stage.root))))


def in_git(stage: Stage) -> list[Fault]:
    """Every place in the git programs that it starts."""
    surroundings = _shim(stage, call="all", syscalls=SYSCALLS)
    assert stage.call(*stage.run_arguments, **surroundings).code == 0
    traces = sorted((stage.root / "faults").glob("*.trace"), key=lambda path: int(path.stem))
    return sorted({fault for path in traces for fault in _faults(int(path.stem), _places(path, stage.root))})


def _places(trace: Path, root: Path) -> Iterator[tuple[str, int]]:
    """Name and number, counted in each thread, of the calls that name something below `root`."""
    seen: Counter[tuple[str, str]] = Counter()
    for line in trace.read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if found:
            thread, syscall = found.groups()
            seen[thread, syscall] += 1
            if str(root) in line:
                yield syscall, seen[thread, syscall]


def _faults(git: int, places: Iterable[tuple[str, int]]) -> Iterator[Fault]:
    """One way to fail for each place, by turns, so that neighbours fail differently; a kill is one of the ways."""
    for syscall, number in places:
        ways = (*ERRORS[syscall], "kill")
        yield Fault(git, syscall, number, ways[(number + git) % len(ways)])


def _shim(stage: Stage, *, call: str, syscalls: str) -> dict[str, str]:
    real = shutil.which("git")
    assert real
    folder, programs = stage.root / "faults", stage.root / "bin"
    folder.mkdir()
    programs.mkdir()
    (programs / "git").symlink_to(_SHIM)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "REAL_GIT": real,
        "FAULT_DIR": str(folder),
        "FAULT_CALL": call,
        "FAULT_SYSCALLS": syscalls,
    }
