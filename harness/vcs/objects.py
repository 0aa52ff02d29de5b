"""Objects by libgit2 over the shared object store alone: no configuration is read and nothing can be executed."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pygit2
from pygit2.enums import FileMode

from harness.errors import GitFailed, UsageError
from harness.model import limits
from harness.model.changes import Change, Kind
from harness.model.ids import CommitId, TreeId
from harness.vcs.git import text
from harness.vcs.libgit2 import translated

Entries = Mapping[bytes, tuple[int, str]]
_KINDS = (FileMode.TREE, FileMode.BLOB, FileMode.BLOB_EXECUTABLE, FileMode.LINK, FileMode.COMMIT)
_MODES = {b"%o" % kind: int(kind) for kind in _KINDS}
_REMEMBERED = 10_000  # entries, not trees: one tree may hold very many
_ID_BYTES = 20
EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


class Objects:
    """Reads and writes commits, trees and blobs."""

    @translated("opening the object store")
    def __init__(self, directory: Path) -> None:
        self._repo = pygit2.Repository()
        self._repo.set_odb(pygit2.Odb(str(directory)))
        self._known: dict[str, Entries] = {}
        self._known_entries = 0

    @translated("looking for a commit")
    def has_commit(self, oid: str) -> bool:
        found = self._repo.get(oid)
        return found is not None and found.type == pygit2.enums.ObjectType.COMMIT

    @translated("reading a commit")
    def tree_of(self, commit: str) -> TreeId:
        return TreeId(str(self._root(commit).id))

    @translated("writing a commit")
    def commit(
        self, tree: TreeId, parents: Sequence[CommitId], message: str, *, when: int, identity: tuple[str, str]
    ) -> CommitId:
        """A commit object; the same arguments give the same id."""
        who = pygit2.Signature(*identity, when, 0, "utf-8")
        clean = message.replace("\0", "").rstrip("\n") + "\n"
        body = clean.encode("utf-8", "backslashreplace").decode()
        self._get(tree)
        made = self._repo.create_commit(None, who, who, body, tree, [str(parent) for parent in parents])
        return CommitId(str(made))

    @translated("comparing trees")
    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Paths that differ between two commits or trees, both sides of a rename, sorted.

        libgit2's own diff would read the user's configuration.
        """
        kinds: dict[bytes, Kind] = {}
        before, after = (self.entries(str(self._root(side).id)) for side in (old, new))
        self._compare(before, after, b"", kinds)
        shown = {text(path): kind for path, kind in kinds.items()}
        return tuple(Change(shown[path], path) for path in sorted(shown))

    @translated("writing a tree")
    def with_file(self, tree: TreeId, path: str, content: bytes) -> TreeId:
        """The tree with one regular file added or replaced; raises UsageError for a path that no tree can hold."""
        parts = _parts(path)
        return TreeId(str(self._placed(self._get(tree), parts, self._repo.create_blob(content))))

    @translated("writing a tree")
    def tree_from(self, files: Mapping[str, bytes]) -> TreeId:
        """A tree of regular files; raises UsageError for paths that no tree can hold, or not together."""
        folders: dict[bytes, Any] = {}
        for path, content in files.items():
            *above, name = (part.encode("utf-8", "surrogateescape") for part in _parts(path))
            folder = folders
            for part in above:
                folder = folder.setdefault(part, {})
                if not isinstance(folder, dict):
                    raise UsageError(f"{path!r:.120} lies below another file", hint="use another path")
            folder[name] = str(self._repo.create_blob(content))
        return self._nested(folders)

    def files(self, tree: str) -> Iterator[tuple[str, bytes]]:
        """Every regular file of a tree or commit, with its path."""
        with translated("reading a tree"):
            yield from self._files(self._root(tree), "")

    @translated("reading a tree")
    def paths(self, oid: str) -> tuple[str, ...]:
        """Every path of a tree or commit, sorted; a submodule is one path."""
        return tuple(sorted(map(text, self._paths(self.entries(str(self._root(oid).id)), b""))))

    @translated("reading a file")
    def content(self, oid: str, path: str) -> bytes | None:
        """A regular file of a tree or commit; None where there is none, or one above TOOL_READ_BYTES."""
        try:
            found = self._root(oid)[path]
        except KeyError:
            return None
        regular = found.filemode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)
        return bytes(found.data) if regular and found.size <= limits.TOOL_READ_BYTES else None

    @translated("reading a file")
    def blob(self, oid: str) -> bytes:
        return bytes(self._get(oid).data)

    @translated("writing a blob")
    def new_blob(self, content: bytes) -> str:
        return str(self._repo.create_blob(content))

    @translated("writing a tree")
    def tree(self, entries: Entries) -> TreeId:
        """A tree object of these entries; the bytes of their names stay what they are."""
        ordered = sorted(entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == FileMode.TREE else b""))
        raw = b"".join(b"%o %s\0%s" % (mode, name, bytes.fromhex(oid)) for name, (mode, oid) in ordered)
        return TreeId(str(self._repo.write(pygit2.enums.ObjectType.TREE, raw)))

    @translated("reading a tree")
    def entries(self, tree: str) -> Entries:
        """Mode and id of each entry of one tree; its id decides them, so what was read once stays true."""
        known = self._known.get(tree)
        if known is None:
            known = _parsed(self._get(tree).read_raw())
            if self._known_entries + len(known) > _REMEMBERED:
                self._known.clear()
                self._known_entries = 0
            self._known[tree] = known
            self._known_entries += len(known)
        return known

    def _nested(self, folder: Mapping[bytes, Any]) -> TreeId:
        return self.tree(
            {
                name: (int(FileMode.TREE), self._nested(item)) if isinstance(item, dict) else (int(FileMode.BLOB), item)
                for name, item in folder.items()
            }
        )

    def _paths(self, entries: Entries, prefix: bytes) -> Iterator[bytes]:
        for name, (mode, oid) in entries.items():
            if mode == FileMode.TREE:
                yield from self._paths(self.entries(oid), prefix + name + b"/")
            else:
                yield prefix + name

    def _compare(self, before: Entries, after: Entries, prefix: bytes, kinds: dict[bytes, Kind]) -> None:
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            path = prefix + name
            below = [self.entries(side[1]) if side and side[0] == FileMode.TREE else {} for side in (old, new)]
            if below[0] or below[1]:
                self._compare(below[0], below[1], path + b"/", kinds)
            was, now = (side is not None and side[0] != FileMode.TREE for side in (old, new))
            if was or now:
                kinds[path] = Kind.MODIFIED if was and now else Kind.ADDED if now else Kind.DELETED

    def _root(self, oid: str) -> Any:
        return self._get(oid).peel(pygit2.Tree)

    def _files(self, tree: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
        for entry in tree:
            if entry.filemode == FileMode.TREE:
                yield from self._files(entry, f"{prefix}{entry.name}/")
            elif entry.filemode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
                yield f"{prefix}{entry.name}", bytes(entry.data)

    def _placed(self, tree: Any, parts: Sequence[str], blob: Any) -> Any:
        head, *rest = parts
        builder = self._repo.TreeBuilder(tree) if tree is not None else self._repo.TreeBuilder()
        if rest:
            below = builder.get(head)
            inner = below if below is not None and below.filemode == FileMode.TREE else None
            builder.insert(head, self._placed(inner, rest, blob), FileMode.TREE)
        else:
            builder.insert(head, blob, FileMode.BLOB)
        return builder.write()

    def _get(self, oid: str) -> Any:
        found = self._repo.get(oid)
        if found is None:
            raise GitFailed(f"object {oid} is missing", hint="run `git fsck`; a shallow or partial clone lacks objects")
        return found


def _parsed(raw: bytes) -> Entries:
    """The entries of a tree object, read here because libgit2's bindings make several objects of each."""
    found: dict[bytes, tuple[int, str]] = {}
    at = 0
    while at < len(raw):
        space = raw.index(b" ", at)
        end = raw.index(b"\0", space)
        after = end + 1 + _ID_BYTES
        found[raw[space + 1 : end]] = (_mode(raw[at:space]), raw[end + 1 : after].hex())
        at = after
    return found


def _mode(octal: bytes) -> int:
    """As git reads it: old programs wrote more permission bits than the one that counts."""
    known = _MODES.get(octal)
    if known is not None:
        return known
    return int(FileMode.BLOB_EXECUTABLE if int(octal, 8) & stat.S_IXUSR else FileMode.BLOB)


def _parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(part in ("..", ".git") for part in parts) or "\0" in path:
        raise UsageError(f"{path!r:.120} is not a path inside a repository", hint="use a relative path")
    return parts
