"""Submodules that a step adds or moves: recorded only at a commit that others can get from the submodule's remote.

The commit is in another repository, of which the harness keeps nothing: one that exists in the workspace alone would be
gone with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness import namespace
from harness.vcs import survey
from harness.vcs.git import Git, text

_FIELD = re.compile(rb"submodule\.(.*)\.(path|url)\n(.*)", re.DOTALL)
_OID = re.compile(r"[0-9a-f]{40}")
_REMOTES = "refs/remotes/"
_REFS = 10_000
_PACKED_BYTES = 64 * 1024 * 1024


def declared(git: Git, root: Path) -> dict[str, str]:
    """Path -> url, as the workspace's `.gitmodules` says; nothing where that is no file that git can read."""
    file = root / ".gitmodules"
    if file.is_symlink() or not file.is_file():
        return {}
    path = namespace.named(file)
    answer = git.run("config", "--file", path, "-z", "--get-regexp", r"^submodule\..*\.(path|url)$", ok=range(256))
    fields: dict[bytes, dict[bytes, str]] = {}
    for item in answer.items():
        found = _FIELD.fullmatch(item)
        if found:
            fields.setdefault(found[1], {})[found[2]] = os.fsdecode(found[3])
    return {about[b"path"]: about.get(b"url", "") for about in fields.values() if b"path" in about}


def problem(git: Git, entry: Path, head: str, url: str | None) -> str | None:
    """Why the commit at which the repository of `entry`, a `.git`, stands must not be recorded; None when it may be."""
    where = survey.git_dir(entry)
    if url and not url.startswith(("./", "../")):
        asked = git.run(
            "config", "--file", namespace.named(where / "config"), "--get", "remote.origin.url", ok=range(256)
        )
        remote = os.fsdecode(asked.out).rstrip("\n")
        if remote != url:
            return f"it was cloned from {remote or 'nowhere'}, and .gitmodules says {url}"
    tips = sorted(set(_fetched(where)))
    if head in tips:
        return None
    if not tips:
        return f"commit {head[:12]} is on no branch of its remote: push it first"
    objects = Path(namespace.named(where / "objects"))
    door = Git(git.git_dir, git.work_tree, objects=objects, alternate=git.objects)
    wanted = "".join([f"{head}\n", *(f"^{tip}\n" for tip in tips)])
    answer = door.run("rev-list", "--max-count=1", "--stdin", stdin=wanted.encode(), ok=range(256))
    if answer.code:
        return f"commit {head[:12]} cannot be looked for: {answer.last_error}"
    return f"commit {head[:12]} is on no branch of its remote: push it first" if answer.out else None


def _fetched(git_dir: Path) -> Iterator[str]:
    """The commits that remotes had; read without git, whose settings there are the agent's."""
    with suppress(OSError):
        file = git_dir / "packed-refs"
        if file.is_file() and not file.is_symlink() and file.stat().st_size < _PACKED_BYTES:
            for row in text(file.read_bytes()).splitlines()[:_REFS]:
                oid, _, name = row.partition(" ")
                if name.startswith(_REMOTES) and _OID.fullmatch(oid):
                    yield oid
    for count, path in enumerate((git_dir / _REMOTES).rglob("*")):
        if count >= _REFS:
            return
        with suppress(OSError):
            oid = text(survey.start_of(path)).strip()
            if _OID.fullmatch(oid):
                yield oid
