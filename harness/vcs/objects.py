"""Objects by libgit2 over the shared object store alone: no configuration is read and nothing can be executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pygit2
from pygit2.enums import FileMode, ObjectType

from harness.errors import GitFailed, UsageError
from harness.model import limits
from harness.model.changes import Change, Kind
from harness.model.ids import CommitId, TreeId
from harness.vcs import trees
from harness.vcs.git import text
from harness.vcs.libgit2 import translated
from harness.vcs.trees import Entries, Entry

_REMEMBERED = 10_000  # entries, not trees: one tree may hold very many
_REMEMBERED_ROOTS = 10_000
_QUICKLY, _SYNC = -1, False  # how libgit2 writes loose objects unless it is told otherwise
_TRIES = 50
_GONE = "No such file or directory"
EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


class Objects:
    """Reads and writes commits, trees and blobs."""

    @translated("opening the object store")
    def __init__(self, directory: Path) -> None:
        self._odb = pygit2.Odb(str(directory))
        self._repo = pygit2.Repository()
        self._repo.set_odb(self._odb)
        # Before it writes, libgit2 looks for the object in every pack and lists the packs anew; a second copy of one
        # that is packed already does no harm, so that new objects go through a store that knows of no packs.
        self._writer = pygit2.Odb()
        self._writer.add_backend(pygit2.OdbBackendLoose(str(directory), _QUICKLY, _SYNC), 1)
        self._roots: dict[str, TreeId] = {}
        self._known: dict[str, Entries] = {}
        self._known_entries = 0

    @translated("looking for a commit")
    def has_commit(self, oid: str) -> bool:
        found = self._repo.get(oid)
        return found is not None and found.type == ObjectType.COMMIT

    @translated("looking for a commit")
    def commit_at(self, oid: str) -> CommitId | None:
        """The commit that an id names, itself or through tags; None when there is none."""
        found = self._repo.get(oid)
        while isinstance(found, pygit2.Tag):
            found = self._repo.get(found.target)
        return CommitId(str(found.id)) if found is not None and found.type == ObjectType.COMMIT else None

    @translated("reading a commit")
    def tree_of(self, commit: str) -> TreeId:
        """The tree of a commit; a tree is its own. The id decides it, so what was read once stays true."""
        known = TreeId(commit) if commit in self._known else self._roots.get(commit)
        if known is None:
            known = TreeId(str(self._root(commit).id))
            if known != commit:
                self._remember_root(commit, known)
        return known

    @translated("writing a commit")
    def commit(
        self, tree: TreeId, parents: Sequence[CommitId], message: str, *, when: int, identity: tuple[str, str]
    ) -> CommitId:
        """A commit object; the same arguments give the same id."""
        who = pygit2.Signature(*identity, when, 0, "utf-8")
        clean = message.replace("\0", "").rstrip("\n") + "\n"
        self.entries(tree)
        for parent in parents:
            if parent not in self._roots and not self.has_commit(parent):
                raise _missing(parent)
        stamp = b"%s <%s> %d +0000" % (who.raw_name, who.raw_email, when)
        head = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines = ["\n".join(head).encode(), b"author " + stamp, b"committer " + stamp, b""]
        raw = b"\n".join([*lines, clean.encode("utf-8", "backslashreplace")])
        made = CommitId(str(self._written(ObjectType.COMMIT, raw)))
        self._remember_root(made, tree)
        return made

    @translated("comparing trees")
    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Paths that differ between two commits or trees, both sides of a rename, sorted.

        libgit2's own diff would read the user's configuration.
        """
        shown = {text(path): _kind(was, now) for path, was, now in self._differences(old, new)}
        return tuple(Change(shown[path], path) for path in sorted(shown))

    @translated("comparing trees")
    def differences(self, old: str, new: str) -> list[tuple[bytes, Entry | None, Entry | None]]:
        """The same with the bytes of each path and its entries; no entry is a directory."""
        return list(self._differences(old, new))

    @translated("writing a tree")
    def with_file(self, tree: TreeId, path: str, content: bytes) -> TreeId:
        """The tree with one regular file added or replaced; raises UsageError for a path that no tree can hold."""
        parts = _parts(path)
        return TreeId(str(self._placed(self._get(tree), parts, self.new_blob(content))))

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
            folder[name] = self.new_blob(content)
        return self._nested(folders)

    def files(self, tree: str) -> Iterator[tuple[str, bytes]]:
        """Every regular file of a tree or commit, with its path."""
        with translated("reading a tree"):
            yield from self._files(self._root(tree), "")

    @translated("reading a tree")
    def paths(self, oid: str) -> tuple[str, ...]:
        """Every path of a tree or commit, sorted; a submodule is one path."""
        return tuple(sorted(map(text, self._paths(self.entries(self.tree_of(oid)), b""))))

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

    @translated("reading a file")
    def size(self, oid: str) -> int:
        return int(self._get(oid).size)

    @translated("writing a blob")
    def new_blob(self, content: bytes) -> str:
        return str(self._written(ObjectType.BLOB, content))

    @translated("writing a tree")
    def tree(self, entries: Entries) -> TreeId:
        """A tree object of these entries; the bytes of their names stay what they are."""
        made = TreeId(str(self._written(ObjectType.TREE, trees.written(entries))))
        self._remember(made, entries)
        return made

    def _written(self, kind: ObjectType, raw: bytes) -> Any:
        """The id of a new loose object.

        The user's `git gc` removes empty folders of the store, also one that libgit2 has just made for this object: git
        itself makes it again, libgit2 gives up.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._writer.write(kind, raw)
            except (pygit2.GitError, OSError, KeyError) as error:
                if not tries_left or _GONE not in str(error):
                    raise
        raise AssertionError  # the last try returns or raises

    def entries(self, tree: str) -> Entries:
        """The entries of one tree; its id decides them, so what was read or written once stays true."""
        known = self._known.get(tree)
        if known is None:
            known = self.glanced(tree)
            self._remember(tree, known)
        return known

    @translated("reading a tree")
    def glanced(self, tree: str) -> Entries:
        """The same for who will not ask again: a walk over all trees would remember the whole repository."""
        known = self._known.get(tree)
        return trees.parsed(self._read(tree, ObjectType.TREE)) if known is None else known

    def below(self, entry: Entry | None) -> Entries:
        """What is in a directory; nothing where the entry is none."""
        return self.entries(trees.oid(entry)) if entry is not None and trees.is_tree(entry) else {}

    def _remember(self, tree: str, entries: Entries) -> None:
        if self._known_entries + len(entries) > _REMEMBERED:
            self._known.clear()
            self._known_entries = 0
        if tree not in self._known:
            self._known[tree] = entries
            self._known_entries += len(entries)

    def _remember_root(self, commit: str, tree: TreeId) -> None:
        if len(self._roots) >= _REMEMBERED_ROOTS:
            self._roots.clear()
        self._roots[commit] = tree

    def _nested(self, folder: Mapping[bytes, Any]) -> TreeId:
        made: dict[bytes, Entry | None] = {
            name: trees.made(FileMode.TREE, name, self._nested(item))
            if isinstance(item, dict)
            else trees.made(FileMode.BLOB, name, item)
            for name, item in folder.items()
        }
        return self.tree(trees.edited({}, made))

    def _paths(self, entries: Entries, prefix: bytes) -> Iterator[bytes]:
        for name, entry in entries.items():
            if trees.is_tree(entry):
                yield from self._paths(self.below(entry), prefix + name + b"/")
            else:
                yield prefix + name

    def _differences(self, old: str, new: str) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
        """Without recursion: an agent may have made directories very deep."""
        waiting = [(b"", self.entries(self.tree_of(old)), self.entries(self.tree_of(new)))]
        while waiting:
            prefix, before, after = waiting.pop()
            for name in trees.differing(before, after):
                one, other = before.get(name), after.get(name)
                path = prefix + name
                if (one is not None and trees.is_tree(one)) or (other is not None and trees.is_tree(other)):
                    waiting.append((path + b"/", self.below(one), self.below(other)))
                was = None if one is None or trees.is_tree(one) else one
                now = None if other is None or trees.is_tree(other) else other
                if was is not None or now is not None:
                    yield path, was, now

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

    def _read(self, oid: str, kind: ObjectType) -> bytes:
        """The bytes of an object; libgit2 would keep its own idea of it besides."""
        try:
            found, raw = self._odb.read(oid)
        except KeyError:
            if oid == EMPTY_TREE:
                return b""  # git knows it without an object
            raise _missing(oid) from None
        if found != kind:
            raise ValueError(f"object {oid} is no {kind.name.lower()}")
        return raw

    def _get(self, oid: str) -> Any:
        found = self._repo.get(oid)
        if found is None:
            raise _missing(oid)
        return found


def _kind(was: Entry | None, now: Entry | None) -> Kind:
    return Kind.ADDED if was is None else Kind.DELETED if now is None else Kind.MODIFIED


def _missing(oid: str) -> GitFailed:
    hint = "run `git fsck`; a shallow or partial clone lacks objects"
    return GitFailed(f"object {oid} is missing", hint=hint, machine=True)


def _parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(part in ("..", ".git") for part in parts) or "\0" in path:
        raise UsageError(f"{path!r:.120} is not a path inside a repository", hint="use a relative path")
    return parts
