"""Starts the shared checkout of the probable base while the rest of the program still loads."""

from __future__ import annotations

from pathlib import Path

from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import places
from harness.vcs.git import Errand
from harness.vcs.private import PrivateDir


@dataclass(frozen=True, slots=True)
class EarlyCheckout:
    """Git at work in a folder. It holds the lock that keeps everybody out of there, and nobody else does."""

    folder: Path
    inode: int
    errand: Errand

    @classmethod
    def at(cls, folder: Path, private: PrivateDir, tree: TreeId, lock: int) -> EarlyCheckout:
        """Starts it with a lock that is held, which the caller may let go of then; raises OSError."""
        places.make_private(folder / "tree")
        git = private.git(folder / "tree", folder / "index")
        return cls(folder, folder.stat().st_ino, git.begin("read-tree", "--reset", "-u", tree, keeping=lock))

    def ends_well(self, wanted: Path, seconds: float) -> bool:
        """Waits for it; gives it up when another folder is wanted."""
        if self.folder != wanted:
            self.errand.end()
            return False
        return self.errand.ends_well(seconds)

    def stands(self) -> bool:
        """Whether it still is what this git made; whoever got the lock after it may have begun anew."""
        return self.folder.is_dir() and self.folder.stat().st_ino == self.inode
