"""Exponents of power laws."""

from __future__ import annotations

import pytest

from bench import growth
from bench.contenders import CHECKOUT, OVERLAY


def test_the_exponent_of_a_power_law_is_found() -> None:
    """Flat, linear, quadratic, and the best line through what is none of them."""
    for power in (0.0, 0.5, 1.0, 2.0):
        assert growth.exponent([(size, 3 * size**power) for size in (1, 8, 32, 128)]) == pytest.approx(power)
    assert growth.exponent([(1, 1), (2, 4), (4, 4)]) == pytest.approx(1.0)


def test_costs_grow_over_steps_and_over_files(made) -> None:
    """Each contender's time and memory, wherever two sizes of the same kind were measured."""
    found = list(growth.measured([made(200, 1), made(200, 8), made(7000, 8)]))
    assert [(one.contender, one.cost, one.of, one.fixed, round(one.exponent, 6)) for one in found] == [
        (name, cost, of, fixed, exponent)
        for of, fixed, exponent in (("steps", "200 files", 1.0), ("files", "8 steps", 0.0))
        for name in ("plain git script", OVERLAY, CHECKOUT)
        for cost in ("time", "memory")
    ]


def test_one_size_has_no_growth(made) -> None:
    """Twice the same is one point."""
    assert list(growth.measured([made(200, 8), made(200, 8)])) == []
