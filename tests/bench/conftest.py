from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.footprint import Footprint
from bench.promises import CHECKOUT, OVERLAY
from bench.timing import Comparison, Spent
from bench.work import Case

MakeCase = Callable[[int, int], Case]


@pytest.fixture
def made() -> MakeCase:
    """A case in which the script takes a second a step, overlays a tenth of it, and memory is the number of steps in MB."""

    def case(files: int, steps: int) -> Case:
        seconds = {"plain git script": 1.0 * steps, OVERLAY: 0.01 * steps, CHECKOUT: 0.4 * steps}
        times = Comparison({name: Spent(value, value / 2) for name, value in seconds.items()}, {})
        return Case(
            files, steps, times, {name: Footprint(20_000_000, steps * 1_000_000, files * 4096) for name in seconds}
        )

    return case
