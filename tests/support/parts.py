"""Parts of a machine that some tests need: at a desk they may be missing, in CI that is a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

# Before a command: a user like any other. Root becomes one with root's files and none of root's rights.
MERE_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000") if os.geteuid() == 0 else ()
_IN_CI = os.environ.get("CI") == "true"  # read before the variable is taken away from the tests


def needs_root(why: str) -> None:
    """Ends the test, skipped, where the suite runs as another user: CI runs it as root, too."""
    if os.geteuid() != 0:
        pytest.skip(why)


def missing(why: str) -> NoReturn:
    """Ends the test: skipped, with the reason, or failed."""
    (pytest.fail if _IN_CI else pytest.skip)(why)
