"""What a failing libgit2 means to a caller: pygit2 raises whatever fits its error codes, and none of it says where."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import pygit2

from harness.errors import GitFailed

P = ParamSpec("P")
R = TypeVar("R")
_RAISED = (pygit2.GitError, OSError, KeyError, ValueError)


class _Translated:
    """Plain rather than a generator: half a dozen of these are passed for each object."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except _RAISED as error:
                raise self._told(error) from error

        return call

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, _RAISED):
            raise self._told(error) from error

    def _told(self, error: Exception) -> GitFailed:
        said = str(error.args[0]) if error.args else str(error)
        hint = "check space, descriptors and permissions, then resume; see `git fsck`"
        return GitFailed(f"{self._what} failed: {said}", hint=hint)


def translated(what: str) -> _Translated:
    """Turns what pygit2 raises into GitFailed; errors of this tree pass. A decorator, and for a `with`."""
    return _Translated(what)
