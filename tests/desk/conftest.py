"""A new user's desk: an unprivileged user, the built wheel in an environment of its own, a terminal, code of others.

As root, programs run as `orchestrix-test` (`.ci/test` makes that user) or as a number without an account; else as the
user who tests. Nothing of the tester's environment reaches them but what is named here.
"""

from __future__ import annotations

import json
import os
import pty
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.parts import missing
from support.workbench import ROOT

_ACCOUNT, _NO_ACCOUNT = "orchestrix-test", 64999
_PATH = "/usr/local/bin:/usr/bin:/bin"


def _identity() -> dict[str, Any]:
    """Arguments of Popen that make a program the unprivileged user's."""
    if os.geteuid():
        return {}
    try:
        account = pwd.getpwnam(_ACCOUNT)
    except KeyError:
        return {"user": _NO_ACCOUNT, "group": _NO_ACCOUNT, "extra_groups": []}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _succeeds(argv: list[str], cwd: Path | None = None) -> bool:
    """Whether the user may run it."""
    try:
        return not subprocess.run(
            argv, cwd=cwd or "/", env={"PATH": _PATH}, capture_output=True, check=False, **_identity()
        ).returncode
    except OSError:
        return False


def _give(path: Path) -> None:
    """Makes the user the owner of everything below."""
    if "user" in _identity():
        owner = f"{_identity()['user']}:{_identity()['group']}"
        subprocess.run(["chown", "-R", "--no-dereference", owner, path], check=True)


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A folder that the user can reach; those of pytest are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="orchestrix-desk-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=False)  # overlays leave folders without any mode
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def wheel(place: Path) -> Path:
    """The wheel of the tracked and new files of this checkout, built with the tools of the tester's environment."""
    source, tar = place / "source", place / "source.tar"
    source.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    names = b"\0".join(name for name in listed.stdout.split(b"\0") if name and (ROOT / os.fsdecode(name)).exists())
    subprocess.run(["tar", "--null", "-T", "-", "-cf", tar], cwd=ROOT, input=names, check=True)
    subprocess.run(["tar", "-xf", tar, "-C", source], check=True)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place / "dist"), str(source))
    (built,) = (place / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="session")
def programs(place: Path, wheel: Path) -> Path:
    """The `bin` of an environment that holds the wheel and what the lock names, and nothing else."""
    mine = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    usable = [python for python in (str(mine), "/usr/bin/python3") if _succeeds([python, "-c", ""])]
    if not usable:
        missing("no Python that an unprivileged user may start")
    folder = place / "venv"
    subprocess.run([usable[0], "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    _pip("--python", str(python), "install", "--require-hashes", "--no-deps", "-r", str(ROOT / ".ci/runtime.lock"))
    _pip("--python", str(python), "install", "--no-deps", str(wheel))
    subprocess.run(["chmod", "-R", "go+rX", folder], check=True)
    return folder / "bin"


def _pip(*args: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        missing(f"pip {args[0]}: {done.stderr[-500:]}")


@dataclass(frozen=True)
class Desk:
    """One repository, one home, one user."""

    root: Path
    programs: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    def _surroundings(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "PATH": f"{self.programs}:{_PATH}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **self.env,
        }

    def writes(self, name: str, text: str) -> Path:
        """A file of the user's, beside the repository or in it."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        _give(path.parent if path.parent != self.root else path)
        return path

    def plans(self, *steps: dict[str, Any]) -> str:
        return str(self.writes("plan.json", json.dumps({"version": 1, "steps": list(steps)})))

    def says(self, *argv: str) -> str:
        """What a program prints on a pipe; it has to succeed."""
        done = subprocess.run(
            argv, cwd=self.repo, env=self._surroundings(), capture_output=True, text=True, check=False, **_identity()
        )
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def types(self, *words: str, meanwhile: Callable[[int], None] | None = None) -> tuple[int, str]:
        """Exit status and screen of an `orchestrix` command on a terminal of its own; `meanwhile` gets the keyboard."""
        leader, follower = pty.openpty()
        if "user" in _identity():
            os.fchown(follower, _identity()["user"], _identity()["group"])
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "orchestrix", *words],
            cwd=self.repo,
            env=self._surroundings(),
            stdin=follower,
            stdout=follower,
            stderr=follower,
            **_identity(),
        )
        os.close(follower)
        if meanwhile:
            meanwhile(leader)
        screen = b""
        try:
            while part := os.read(leader, 65536):
                screen += part
        except OSError:
            pass  # Linux answers EIO when the last writer is gone
        os.close(leader)
        return process.wait(timeout=300), screen.decode(errors="replace")

    def kinds(self, *where: str) -> list[str]:
        """The kind of each workspace of the latest run."""
        events = map(json.loads, self.says("orchestrix", "events", "--jsonl", *where).splitlines())
        return [event["payload"]["workspace"] for event in events if event["type"] == "workspace.preparing"]


@pytest.fixture
def desk(place: Path, programs: Path) -> Desk:
    """The source of a library, as its authors wrote it, under git."""
    made = Desk(Path(tempfile.mkdtemp(dir=place)), programs)
    made.root.chmod(0o755)
    (made.root / "home").mkdir()
    (library,) = programs.parent.glob("lib/python3*/site-packages/rich")
    shutil.copytree(library, made.repo, ignore=shutil.ignore_patterns("__pycache__"))
    _give(made.root)
    made.says("git", "init", "-q", "-b", "main")
    made.says("git", "config", "--global", "user.name", "Ada")
    made.says("git", "config", "--global", "user.email", "ada@example.org")
    made.says("git", "add", "-A")
    made.says("git", "commit", "-q", "-m", "Start")
    return made


@pytest.fixture(scope="session")
def best_kind(place: Path) -> str:
    """The kind that a workspace must have here: overlays where the user may mount them and confine agents."""
    folder = Path(tempfile.mkdtemp(dir=place))
    for name in ("lower", "upper", "work", "tree"):
        (folder / name).mkdir()
    _give(folder)
    options = "lowerdir=lower,upperdir=upper,workdir=work,userxattr"
    mounts = _succeeds(
        ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "overlay", "none", "-o", options, "tree"],
        folder,
    )
    confines = _succeeds(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"])
    return "overlay" if mounts and confines else "checkout"
