"""One git that merges pair after pair: most of what a merge by a process of its own costs is the process.

It only ever saves time: whenever it does not answer as expected, `answer` says so, and the caller asks another git.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import weakref
from pathlib import Path

from harness.model.ids import CommitId
from harness.vcs.git import Conversation, check_time
from harness.vcs.objects import Objects
from harness.vcs.private import PrivateDir

_PATIENCE_S = 20.0
_NOBODY = ("Orchestrix", "orchestrix@localhost")
Attributes = tuple[tuple[bytes, str], ...]


class MergeProcess:
    """Git in a directory that holds these attribute files and nothing else; it reads them once."""

    def __init__(self, objects: Objects, private: PrivateDir, attributes: Attributes, unbuffered: str) -> None:
        """Raises OSError when it cannot be started."""
        self.key = (private.path, attributes)
        self._mark, self._end = _mark(Objects(private.own_objects))
        scratch = tempfile.TemporaryDirectory(prefix="merge-", dir=private.path.parent)
        lay_out(objects, attributes, Path(scratch.name))
        door = private.git(Path(scratch.name))
        self._git = door.converse(unbuffered, "merge-tree", "--write-tree", "--stdin", "-z", "--name-only")
        self._finish = weakref.finalize(self, _finish, self._git, scratch)

    def answer(self, ours: CommitId, theirs: CommitId) -> list[bytes] | None:
        """The fields of git's answer, its verdict first; None when it does not answer."""
        try:
            return self._ask(f"{ours} {theirs}\n{self._mark} {self._mark}\n".encode())
        except OSError:
            return None

    def close(self) -> None:
        self._finish()

    def _ask(self, question: bytes) -> list[bytes] | None:
        """A pair with a result that nobody can guess follows each question: where that is, the answer is whole."""
        self._git.say(question)
        said = bytearray()
        deadline = time.monotonic() + min(_PATIENCE_S, check_time())
        while not said.endswith(self._end):
            data = self._git.hear(max(0.0, deadline - time.monotonic()))
            if not data:
                return None
            said += data
        return bytes(said[: -len(self._end)]).split(b"\0")


def unbuffered() -> str | None:
    """The program without which git keeps its answers to itself until the end."""
    return shutil.which("stdbuf")


def lay_out(objects: Objects, attributes: Attributes, folder: Path) -> None:
    """`git merge` reads attributes from the checkout of ours; merge-tree from the directory that it runs in."""
    for path, blob in attributes:
        place = folder / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(objects.blob(blob))


def _mark(synthetic: Objects) -> tuple[CommitId, bytes]:
    tree = synthetic.tree_from({secrets.token_hex(16): b""})
    commit = synthetic.commit(tree, (), "mark", when=0, identity=_NOBODY)
    return commit, b"1\0" + tree.encode() + b"\0\0"


def _finish(git: Conversation, scratch: tempfile.TemporaryDirectory[str]) -> None:
    git.end()
    scratch.cleanup()
