"""The git dir of a workspace: refs, settings and new objects of its own, over the shared objects, which it only reads.

Nothing that an agent does with git reaches the user's repository: neither a ref, nor a lock, nor an object. The harness
imports the agent's objects and then publishes refs to them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from harness.model.changes import Workspace
from harness.model.ids import CommitId, RefName
from harness.ports import AgentRights
from harness.vcs.effective import Effective
from harness.vcs.repo import Layout
from harness.vcs.survey import start_of

# The harness' own, what belongs to one checkout alone, and what the harness never follows.
_NOT_SHOWN = tuple(
    f"refs/{name}".encode()
    for name in ("orchestrix/", "heads/orchestrix/", "replace/", "bisect/", "worktree/", "rewritten/", "stash")
)
_IDENTITY = ("user.name", "user.email")
_COPIED = ("info/attributes", "info/exclude", "shallow")
_SYMBOLIC = b"ref: "
Stamps = Mapping[bytes, tuple[int, int]]


class StepGit:
    """Makes the git dirs of one repository's workspaces."""

    def __init__(self, layout: Layout, effective: Effective) -> None:
        self._layout = layout
        self._effective = effective
        self._common = os.fsencode(layout.common_dir)
        self._known: tuple[Stamps, dict[bytes, bytes]] = {}, {}

    def make(self, git_dir: Path, remembered: Path, start: CommitId, branch: RefName | None) -> None:
        """A git dir without an index; `remembered` gets its refs as they are now, out of the agent's reach."""
        for name in ("", "/objects", "/objects/info", "/refs", "/info"):
            os.mkdir(f"{git_dir}{name}", 0o755)  # noqa: PTH102 - for every workspace, as all of this
        shown = self._refs() | ({branch.encode(): start.encode()} if branch else {})
        refs = packed(shown)
        _write(f"{remembered}", refs)
        _write(f"{git_dir}/packed-refs", refs)
        _write(f"{git_dir}/HEAD", f"ref: {branch}\n".encode() if branch else f"{start}\n".encode())
        _write(f"{git_dir}/config", self._config)
        _write(f"{git_dir}/objects/info/alternates", alternates(self._layout.objects))
        for ref, target in shown.items():
            if target.startswith(_SYMBOLIC):
                path = git_dir / os.fsdecode(ref)
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(str(path), target + b"\n")
        for name in _COPIED:
            with suppress(FileNotFoundError):
                _write(f"{git_dir}/{name}", (self._layout.common_dir / name).read_bytes())

    @cached_property
    def _config(self) -> bytes:
        """The user's settings for this repository, as they are at any time, and over them what must be as it was.

        Settings that depend on where a git dir stands (`includeIf`) decided how the files were written.
        """
        chosen = self._effective
        fixed = {**chosen.followed, **{key: chosen.values[key] for key in _IDENTITY if key in chosen.values}}
        common = self._layout.common_dir
        return b"".join(
            [
                _setting("core.repositoryformatversion", "0"),
                _setting("core.bare", "false"),
                b"" if chosen.hooks_path else _setting("core.hookspath", f"{common}/hooks"),
                _setting("include.path", f"{common}/config"),
                _setting("core.sparsecheckout", "false"),
                *(_setting(key, value) for key, value in fixed.items()),
            ]
        )

    def _refs(self) -> dict[bytes, bytes]:
        """The user's refs; read again when a folder of them, or the file of the packed ones, changed."""
        seen, shown = self._known
        if not seen or seen != {path: _stamp(path) for path in seen}:
            self._known = seen, shown = self._look()
        return shown

    def _look(self) -> tuple[Stamps, dict[bytes, bytes]]:
        """Loose ones first: what is packed meanwhile is in the file by then."""
        stamps: dict[bytes, tuple[int, int]] = {}
        loose: dict[bytes, bytes] = {}
        waiting = [b"refs"]
        while waiting:
            folder = waiting.pop()
            path = self._common + b"/" + folder
            stamps[path] = _stamp(path)
            with suppress(FileNotFoundError), os.scandir(path) as entries:
                for entry in entries:
                    name = folder + b"/" + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [] if (name + b"/").startswith(_NOT_SHOWN) else [name]
                    elif not name.startswith(_NOT_SHOWN) and not name.endswith(b".lock"):
                        with suppress(OSError):
                            loose[name] = start_of(os.fsdecode(entry.path)).strip()
        file = self._common + b"/packed-refs"
        stamps[file] = _stamp(file)
        found = parsed(Path(os.fsdecode(file))) | loose
        return stamps, {name: at for name, at in found.items() if not name.startswith(_NOT_SHOWN) and _is_whole(at)}


def rights(workspace: Workspace, common_dir: Path) -> AgentRights:
    """What git writes when the agent commits, and what it reads; the shared repository stays unwritable."""
    return AgentRights(writable=(workspace.admin,), readable=(common_dir,))


def own_objects(workspace: Workspace) -> Path:
    """Where the agent's objects are; a workspace that an earlier version made has them beside."""
    earlier = workspace.private / "objects"
    return earlier if os.path.lexists(earlier) else workspace.admin / "objects"


def alternates(objects: Path) -> bytes:
    """The content of a file `objects/info/alternates`."""
    return os.fsencode(objects) + b"\n"


def packed(refs: Mapping[bytes, bytes]) -> bytes:
    """The content of a file `packed-refs`; symbolic refs cannot stand in one."""
    lines = [at + b" " + name + b"\n" for name, at in sorted(refs.items()) if not at.startswith(_SYMBOLIC)]
    return b"# pack-refs with: sorted \n" + b"".join(lines)


def parsed(file: Path) -> dict[bytes, bytes]:
    """The refs in a file `packed-refs`; none where there is no such file."""
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    halves = (line.partition(b" ") for line in lines if line[:1] not in (b"#", b"^"))
    return {name: at for at, _, name in halves if name}


def _is_whole(value: bytes) -> bool:
    return value.startswith(_SYMBOLIC) or (len(value) == 40 and not value.strip(b"0123456789abcdef"))  # noqa: PLR2004 - an object id


def _stamp(path: bytes) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - bytes, and often
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def _setting(key: str, value: str) -> bytes:
    section, _, name = key.rpartition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{name} = "{quoted}"\n'.encode("utf-8", "surrogateescape")


def _write(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
