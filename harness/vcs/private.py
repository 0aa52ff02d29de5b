"""A git dir of the harness itself over the shared objects: no config, hook, filter or driver of others runs in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from harness.errors import MACHINE_FAULTS
from harness.model.late import dataclass
from harness.vcs.effective import Effective
from harness.vcs.git import Git
from harness.vcs.places import make_private
from harness.vcs.repo import Layout

# The highest rank of all attribute files: what an agent wrote in its own converts nothing.
_AS_THEY_ARE = b"* -text !eol !crlf !ident !filter !working-tree-encoding\n"
_RULES = ("info/attributes", "info/exclude", "user-attributes", "user-excludes")


@dataclass(frozen=True)
class PrivateDir:
    """Where git runs for snapshots, checkouts and merges; new objects land in the user's object store.

    It never changes once it is made, so that what it says is read once.
    """

    path: Path
    shared_objects: Path

    @property
    def own_objects(self) -> Path:
        """For objects that need not outlive one call."""
        return self.path / "objects"

    @cached_property
    def settings(self) -> str:
        """Names what decides how files are written and ignored here: the same settings give the same text."""
        digest = hashlib.sha256()
        for content in (_read(self.path / "config"), *self._rules.values()):
            digest.update(content.replace(os.fsencode(self.path), b"") + b"\0")
        return digest.hexdigest()[:16]

    def has_rules(self, *names: str) -> bool:
        """Whether one of these files of the user says anything at all."""
        lines = [line.strip() for name in names for line in self._rules[name].splitlines()]
        return any(line and not line.startswith(b"#") for line in lines)

    @cached_property
    def _rules(self) -> dict[str, bytes]:
        return {name: _read(self.path / name) for name in _RULES}

    def git(self, work_tree: Path, index: Path | None = None) -> Git:
        return Git(self.path, work_tree, index, objects=self.shared_objects, alternate=self.own_objects)

    def unconverting(self) -> PrivateDir:
        """The same, where files are stored as they are, whatever attributes say."""
        path = self.path.with_name(f"{self.path.name}-raw")
        if not path.is_dir():
            aside = Path(tempfile.mkdtemp(prefix=".raw-", dir=path.parent))
            shutil.copytree(self.path, aside, ignore=shutil.ignore_patterns("??"), dirs_exist_ok=True)
            (aside / "info" / "attributes").write_bytes(_AS_THEY_ARE)
            with suppress(OSError):  # another thread was first
                aside.rename(path)
        return PrivateDir(path, self.shared_objects)

    def over_checkout(self, layout: Layout) -> Git:
        """Git over the user's own files and index, to look at them; a split index has its other half beside it."""
        for half in layout.git_dir.glob("sharedindex.*"):
            with suppress(FileExistsError):
                (self.path / half.name).symlink_to(half)
        return self.git(layout.root, layout.index)


def ensure(path: Path, layout: Layout, effective: Effective) -> PrivateDir:
    """The private git dir at a path, made from the user's settings unless it exists; another process may reopen it."""
    if not path.is_dir():
        make_private(path.parent)
        aside = Path(tempfile.mkdtemp(prefix=".new-", dir=path.parent))
        for name, content in _contents(path, layout, effective).items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_bytes(content)
        for name in ("objects", "refs"):
            (aside / name).mkdir(exist_ok=True)
        try:
            aside.rename(path)
        except OSError:
            # Somebody else was first: theirs is as good. Anything else is an error of this path.
            shutil.rmtree(aside)
            if not path.is_dir():
                raise
    return PrivateDir(path, layout.objects)


def fingerprint(layout: Layout, effective: Effective) -> str:
    """Names the settings: the same settings give the same text."""
    contents = _contents(Path("/"), layout, effective)
    return hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:16]


def _contents(path: Path, layout: Layout, effective: Effective) -> dict[str, bytes]:
    info = layout.common_dir / "info"
    return {
        "HEAD": b"ref: refs/heads/none\n",
        "config": _config(path, effective),
        "objects/info/alternates": os.fsencode(layout.objects) + b"\n",
        "info/attributes": _read(info / "attributes"),
        "info/exclude": _read(info / "exclude"),
        "user-attributes": _read(effective.companion("core.attributesfile", "attributes")),
        "user-excludes": _read(effective.companion("core.excludesfile", "ignore")),
    }


def _config(path: Path, effective: Effective) -> bytes:
    settings = {
        "core.repositoryformatversion": "0",
        "core.bare": "false",
        "core.attributesfile": str(path / "user-attributes"),
        "core.excludesfile": str(path / "user-excludes"),
        **effective.followed,
    }
    lines = []
    for key, value in settings.items():
        section, name = key.split(".", 1)
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{name} = "{quoted}"\n')
    return "".join(lines).encode("utf-8", "surrogateescape")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return b""
