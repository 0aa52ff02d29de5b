"""The entries of one tree object, kept as the very bytes that git writes: to compare, copy and write them costs no parsing."""

from __future__ import annotations

import re
import stat
from bisect import insort
from collections.abc import Mapping

from pygit2.enums import FileMode

Entry = bytes
"""`<octal mode> <name>\\0<id>`, the id as 20 bytes."""
Entries = Mapping[bytes, Entry]
"""By name, in the order of git; never changed once it is made."""
_ID_BYTES = 20
_ENTRY = re.compile(rb"(([0-7]+) ([^\0]+)\0.{20})", re.DOTALL)
_KINDS = (FileMode.TREE, FileMode.BLOB, FileMode.BLOB_EXECUTABLE, FileMode.LINK, FileMode.COMMIT)
_MODES = frozenset(b"%o" % kind for kind in _KINDS)
_TREE, _GITLINK, _FILE = b"40000 ", b"160000 ", b"100"


def parsed(raw: bytes) -> Entries:
    """The entries of a tree object; raises ValueError for what is none."""
    found = _ENTRY.findall(raw)
    if sum(len(entry) for entry, _, _ in found) != len(raw):
        raise ValueError("a tree object is malformed")
    if all(mode in _MODES for _, mode, _ in found):
        return {name: entry for entry, _, name in found}
    return {name: made(_canonical(mode), name, entry[-_ID_BYTES:].hex()) for entry, mode, name in found}


def written(entries: Entries) -> bytes:
    return b"".join(entries.values())


def made(mode: int, name: bytes, oid: str) -> Entry:
    return b"%o %s\0%s" % (mode, name, bytes.fromhex(oid))


def is_tree(entry: Entry) -> bool:
    return entry.startswith(_TREE)


def is_gitlink(entry: Entry) -> bool:
    return entry.startswith(_GITLINK)


def is_file(entry: Entry) -> bool:
    """A regular file, executable or not."""
    return entry.startswith(_FILE)


def mode(entry: Entry) -> int:
    return int(entry[: entry.index(b" ")], 8)


def oid(entry: Entry) -> str:
    return entry[-_ID_BYTES:].hex()


def edited(base: Entries, edits: Mapping[bytes, Entry | None]) -> Entries:
    """The base with some names set, or taken away by None."""
    kept = dict(base)
    new = []
    for name, entry in edits.items():
        old = kept.get(name)
        if entry is not None and old is not None and is_tree(entry) == is_tree(old):
            kept[name] = entry
            continue
        kept.pop(name, None)
        if entry is not None:
            new.append((name, entry))
    if not new:
        return kept
    items = list(kept.items())
    for item in new:
        insort(items, item, key=_rank)
    return dict(items)


def differing(one: Entries, other: Entries) -> set[bytes]:
    """The names under which the two do not hold the same."""
    return {name for name, _ in one.items() ^ other.items()}


def _rank(item: tuple[bytes, Entry]) -> bytes:
    """Git sorts a directory as if its name ended with a slash."""
    name, entry = item
    return name + b"/" if is_tree(entry) else name


def _canonical(octal: bytes) -> int:
    """As git reads it: old programs wrote more permission bits than the one that counts, and leading zeros."""
    bits = int(octal, 8)
    if stat.S_ISREG(bits):
        return int(FileMode.BLOB_EXECUTABLE if bits & stat.S_IXUSR else FileMode.BLOB)
    kind = stat.S_IFMT(bits)
    return kind if kind in (FileMode.TREE, FileMode.LINK) else int(FileMode.COMMIT)
