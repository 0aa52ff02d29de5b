"""What a failing libgit2 means to a caller: pygit2 raises whatever fits its error codes, and none of it says where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pygit2

from harness.errors import GitFailed


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns what pygit2 raises into GitFailed; errors of this tree pass. Also a decorator."""
    try:
        yield
    except (pygit2.GitError, OSError, KeyError, ValueError) as error:
        said = str(error.args[0]) if error.args else str(error)
        raise GitFailed(
            f"{what} failed: {said}", hint="check space, descriptors and permissions, then resume; see `git fsck`"
        ) from error
