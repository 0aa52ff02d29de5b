"""Which repository this is: where its files, git dir and shared git dir are, and whether it can be worked with."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from harness.errors import EnvironmentProblem
from harness.model.late import dataclass
from harness.vcs import git

OLDEST_GIT = (2, 38)
_PIECE = 64 * 1024
_PROMISOR = re.compile(r"remote\..*\.promisor|extensions\.partialclone", re.DOTALL)
_FALSE = ("false", "no", "off", "0", "")
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")
_QUESTIONS = (
    "--is-bare-repository",
    "--show-object-format",
    "--absolute-git-dir",
    "--path-format=absolute",
    "--git-common-dir",
    "--show-toplevel",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of one checkout are; `git_dir` differs from `common_dir` in a linked worktree."""

    root: Path
    git_dir: Path
    common_dir: Path

    @property
    def objects(self) -> Path:
        return self.common_dir / "objects"

    @property
    def index(self) -> Path:
        return self.git_dir / "index"


def discover(start: Path) -> Layout:
    """The checkout that a directory belongs to; raises EnvironmentProblem with what to do about it."""
    if not start.is_dir():
        raise EnvironmentProblem(f"{start} is not a directory", hint="name a directory inside a git checkout")
    check_version(start)
    answer = git.ask("rev-parse", *_QUESTIONS, cwd=start)
    lines = answer.out.split(b"\n")[:-1]
    if lines[:1] == [b"true"]:
        raise EnvironmentProblem(
            f"{start} is a bare repository", hint="run it in a checkout: `git worktree add` or `git clone` makes one"
        )
    if len(lines) >= 2 and lines[1] != b"sha1":  # noqa: PLR2004 - the second answer
        raise EnvironmentProblem(
            f"the repository at {start} uses the {git.text(lines[1])} object format",
            hint="only sha1 repositories are supported so far",
        )
    if answer.code != 0:
        raise _refused(start, answer)
    if len(lines) != len(_QUESTIONS) - 1:
        raise EnvironmentProblem(f"the path of the repository at {start} holds a line break", hint="move it elsewhere")
    git_dir, common_dir, root = (Path(os.fsdecode(line)) for line in lines[2:])
    return Layout(root=root, git_dir=git_dir, common_dir=common_dir.resolve())


def check_supported(layout: Layout, settings: Mapping[str, str]) -> None:
    """Raises EnvironmentProblem for a repository that a run could only fail on; `settings` by lower-case key."""
    promisors = [key for key, value in settings.items() if _PROMISOR.fullmatch(key) and value.lower() not in _FALSE]
    if promisors or any(layout.objects.glob("pack/*.promisor")):
        raise EnvironmentProblem(
            f"the repository at {layout.root} is a partial clone ({', '.join(promisors) or 'it has promisor packs'})",
            hint="objects that a step needs may be missing: clone it without --filter",
        )
    for line in _lines(layout.objects / "info" / "alternates"):
        if line and not line.startswith("#") and not (layout.objects / line).is_dir():
            raise EnvironmentProblem(
                f"the repository at {layout.root} borrows objects from {line}, which is no directory",
                hint="bring it back, or correct objects/info/alternates",
            )
    if not os.access(layout.objects, os.R_OK | os.W_OK | os.X_OK):
        raise EnvironmentProblem(
            f"{layout.objects} cannot be read and written", hint="results are stored there: give yourself the right"
        )


def _lines(file: Path) -> list[str]:
    try:
        return os.fsdecode(file.read_bytes()).splitlines()
    except FileNotFoundError:
        return []


def may_track(layout: Layout, name: str) -> bool:
    """Whether the checkout's index can hold a path with this in it: a no is certain, and costs no process.

    Index versions 2 and 3 spell every path out; version 4 does not, and half of a split index is elsewhere.
    """
    if any(layout.git_dir.glob("sharedindex.*")):
        return True
    try:
        with layout.index.open("rb") as file:
            spelled = file.read(8) in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")
            return not spelled or _holds(file, os.fsencode(name))
    except OSError:
        return True


def _holds(file: BinaryIO, wanted: bytes) -> bool:
    """Piece by piece: the index of a large repository is megabytes."""
    seen = b""
    while piece := file.read(_PIECE):
        seen = seen[-len(wanted) :] + piece
        if wanted in seen:
            return True
    return False


def check_version(where: Path) -> None:
    """Raises EnvironmentProblem when git is missing or too old."""
    answer = git.ask("version", cwd=where)
    if answer.code != 0:
        raise EnvironmentProblem(
            f"git does not work here: {answer.last_error}", hint="mend what it names; `git version` must succeed"
        )
    found = _VERSION.match(answer.out)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        version = git.text(answer.out).strip() or answer.last_error
        raise EnvironmentProblem(
            f"git is too old: {version}", hint="install git {}.{} or newer and put it on PATH".format(*OLDEST_GIT)
        )


def _refused(start: Path, answer: git.Answer) -> EnvironmentProblem:
    if b"dubious ownership" in answer.err:
        return EnvironmentProblem(
            f"git refuses {start}, which belongs to another user: {answer.last_error}",
            hint="if you trust it: git config --global --add safe.directory <path>",
        )
    broken = next((folder / ".git" for folder in (start, *start.parents) if os.path.lexists(folder / ".git")), None)
    if b"not a git repository" in answer.err and broken is not None:
        return EnvironmentProblem(
            f"git does not take {broken} for a repository: {answer.last_error}",
            hint="look at HEAD, objects and refs there; `git status` must succeed",
        )
    if b"not a git repository" in answer.err:
        return EnvironmentProblem(
            f"{start} is not in a git repository", hint="run `git init` and commit once, or use -C DIR"
        )
    if b"must be run in a work tree" in answer.err:
        return EnvironmentProblem(f"{start} is inside a git dir, not a checkout", hint="use -C with the checkout")
    return EnvironmentProblem(
        f"git cannot read the repository at {start}: {answer.last_error}", hint="try `git status` there"
    )


def default_state_home() -> Path:
    """Where workspaces live unless the settings say otherwise."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "orchestrix"


def state_dir(state_home: Path, layout: Layout) -> Path:
    """This checkout's own directory there: readable by name, unique by its git dir, as its log is its own, too."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", layout.root.name)[:40] or "repository"
    digest = hashlib.sha256(os.fsencode(layout.git_dir)).hexdigest()[:12]
    return state_home / f"{name}-{digest}"
