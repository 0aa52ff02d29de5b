"""Real repositories in temporary directories, independent of the user's own git configuration."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.parts import missing

from harness import namespace
from harness.model.changes import Snapshot, Workspace
from harness.model.ids import CommitId, RefName, RunId
from harness.vcs import overlay
from harness.vcs.kinds import Mode
from harness.vcs.repository import Repository

RUN = RunId("r1")
NOBODY = 65534


class Checkout:
    """A user's checkout, driven by plain git as a user would."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *args: str, cwd: Path | None = None, ok: tuple[int, ...] = (0,)) -> str:
        where = recorded(cwd or self.root)
        done = subprocess.run(
            [*namespace.entry(where), "git", "-C", where, "-c", "user.name=U", "-c", "user.email=u@example.org", *args],
            capture_output=True,
            check=False,
        )
        assert done.returncode in ok, (args, done.stdout, done.stderr)
        return os.fsdecode(done.stdout).strip()

    def write(self, path: str, content: str | bytes = "text\n") -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place

    def commit(self, message: str = "change", **files: str) -> str:
        for path, content in files.items():
            self.write(path, content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def files(self, commit: str) -> dict[str, str]:
        """Path to `mode object` of every entry of a commit."""
        listed = self.git("ls-tree", "-r", "-z", commit).split("\0")
        entries = (line.split("\t", 1) for line in listed if line)
        return {path: " ".join(meta.split()[::2]) for meta, path in entries}

    def content(self, commit: str, path: str) -> bytes:
        done = subprocess.run(
            ["git", "cat-file", "blob", f"{commit}:{path}"], cwd=self.root, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def recorded(path: Path) -> Path:
    """The path by which programs find what a test reaches by `namespace.seen`."""
    return Path(re.sub(r"^/proc/self/fd/\d+", "", str(path)))


class Visible(Repository):
    """Its workspaces have the paths by which the tests themselves reach the files, also those of an overlay."""

    def open_workspace(
        self, run: RunId, name: str, start: CommitId, branch: RefName | None, only: Sequence[str] | None = None
    ) -> Workspace:
        made = super().open_workspace(run, name, start, branch, only)
        return dataclasses.replace(made, path=Path(namespace.seen(made.path)))

    def find_workspace(self, run: RunId, name: str) -> Workspace | None:
        found = super().find_workspace(run, name)
        return found and dataclasses.replace(found, path=Path(namespace.seen(found.path)))

    def snapshot(self, workspace: Workspace, message: str, when: int) -> Snapshot:
        return super().snapshot(dataclasses.replace(workspace, path=recorded(workspace.path)), message, when)


def as_a_mere_user(scratch: Path, act: Callable[[], str]) -> str:
    """Root passes every closed door: only another user meets them."""
    if os.geteuid() != 0:
        return act()
    for top, directories, files in os.walk(scratch):
        for path in (top, *(f"{top}/{name}" for name in (*directories, *files))):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            os.write(writer, act().encode())
        except Exception:  # noqa: BLE001 - told to the parent, which fails with it
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def vouch_for_all(workspace: Workspace) -> None:
    """The index of a fresh checkout is as old as the last files of it, and cannot vouch for those; now it is younger."""
    time.sleep(0.02)
    os.utime(workspace.private_index)


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's configuration, and none leaves anything in their home."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".state"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A repository with one commit."""
    root = tmp_path / "project"
    root.mkdir()
    made = Checkout(root)
    made.git("init", "--quiet", "--initial-branch=main")
    made.write("README.md", "hello\n")
    made.write("src/app.py", "print(1)\n")
    made.write("src/lib.py", "one\ntwo\nthree\n")
    made.commit("base")
    return made


@pytest.fixture
def workspaces() -> Mode:
    """How workspaces are made; a module whose claims hold for every kind parametrises this."""
    return "checkout"


@pytest.fixture
def open_vcs(workspaces: Mode, tmp_path: Path) -> Callable[[Path], Repository]:
    """Opens the repository of a checkout."""

    def opened(root: Path) -> Repository:
        made = Visible.discover(root, tmp_path / "state")
        if workspaces == "overlay" and overlay.why_not(made.state_dir):
            missing(overlay.why_not(made.state_dir))
        made.choose_workspaces(workspaces)
        return made

    return opened


@pytest.fixture
def vcs(checkout: Checkout, open_vcs: Callable[[Path], Repository]) -> Repository:
    return open_vcs(checkout.root)
