from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.contenders import BARE, CHECKOUT, OVERLAY, PLAIN
from bench.footprint import Footprint
from bench.ground import Ground
from bench.places import title
from bench.timing import Comparison, Spent
from bench.work import Case

MakeCase = Callable[[int, int], Case]


@pytest.fixture
def made() -> MakeCase:
    """A case in which the script takes a second a step, overlays a hundredth of it, and memory is the number of steps in MB."""

    def case(files: int, steps: int) -> Case:
        seconds = {PLAIN: 1.0 * steps, OVERLAY: 0.01 * steps, CHECKOUT: 0.4 * steps, BARE: 0.002 * steps}
        rounds = {name: [Spent(value, value / 2), Spent(value * 1.5, value)] for name, value in seconds.items()}
        sizes = {name: Footprint(20_000_000, steps * 1_000_000, files * 4096) for name in seconds}
        return Case(title(steps, files), files, steps, Comparison(rounds, PLAIN, {}), sizes)

    return case


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with Ground(str(tmp_path)) as ground:
        yield ground
