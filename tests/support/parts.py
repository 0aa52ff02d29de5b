"""Parts of a machine that some tests need: at a desk they may be missing, in CI that is a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

_IN_CI = os.environ.get("CI") == "true"  # read before the variable is taken away from the tests


def missing(why: str) -> NoReturn:
    """Ends the test: skipped, with the reason, or failed."""
    (pytest.fail if _IN_CI else pytest.skip)(why)


def needs_root(why: str) -> NoReturn:
    """Ends the test of a tester without root: CI runs it as root, too."""
    (missing if os.geteuid() == 0 else pytest.skip)(why)
