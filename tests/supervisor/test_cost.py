"""What a step costs: the claim in full behind the marker, and a bound that no busy machine breaks in the suite."""

from __future__ import annotations

import pytest

from bench.supervisor import MAX_LANGGRAPH_RATIO, MAX_NATIVE_US, measure


def test_both_drivers_finish_a_long_turn():
    """A hundred pairs run to the end on both; the native loop is at least twice as fast as LangGraph."""
    result = measure(pairs=100, rounds=1)
    assert result["steps"] == 201
    assert result["native_us_per_step"] * 2 < result["langgraph_us_per_step"]


@pytest.mark.bench
def test_a_step_costs_what_was_promised():
    """A thousand pairs: at most 20 µs a step natively, at most 1.3 times a hand-written graph with LangGraph."""
    result = measure(pairs=1000, rounds=5)
    assert result["native_us_per_step"] <= MAX_NATIVE_US, result
    assert result["langgraph_ratio"] <= MAX_LANGGRAPH_RATIO, result
