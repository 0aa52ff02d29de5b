"""One kernel, two drivers: the same traces and states over generated registries, and rules that hold in each of them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.supervisor import run_registry
from tests.supervisor.generated import Case, grow
from tests.supervisor.kit import compiled

BATCHES, SIZE = 10, 52


@pytest.fixture(autouse=True, scope="module")
def quiet():
    """Generated nodes break their contracts on purpose; a thousand warnings would hide the one line that matters."""
    log = logging.getLogger("harness.supervisor")
    log.setLevel(logging.ERROR)
    yield
    log.setLevel(logging.NOTSET)


async def outcome(run):
    try:
        return await run
    except ValueError as error:
        return str(error)


async def run_both(case: Case, state):
    native = await outcome(run_registry(case.registry, state, entrypoint="main", **case.options))
    graph = compiled(case.registry, "main_supervisor", **case.options)
    return native, await outcome(graph.ainvoke(state))


def check_rules(case: Case, state):
    """What must be true at the end of every turn, whatever happened in it."""
    internal = state["_internal"]
    json.dumps(state)
    assert internal["phase"] == "ended"
    if "decision_trace" not in internal:
        return
    trace = internal["decision_trace"]
    assert internal["call_stack"] == []
    assert all(item["reason"] for item in trace)
    assert [item["step"] for item in trace] == sorted(item["step"] for item in trace)
    assert all(item["decision_kind"] != "STOP_GLOBAL" for item in trace[:-1]), "something ran after STOP_GLOBAL"
    assert all(item["termination_reason"] is None for item in trace[:-1])
    if trace and trace[-1]["termination_reason"]:
        assert state["response"]["response_type"] == "terminal"
        assert state["response"]["response_message"]
    budgets = internal.get("budgets")
    if budgets:
        assert internal["step_count"] <= budgets["max_steps"] + 1
        assert max((item["depth"] for item in trace), default=0) <= max(0, budgets["max_depth"])
        assert max(internal["visited_subgraphs"].values(), default=0) <= max(0, budgets["max_reentry"])


def compare(seed: int) -> None:
    """Run two turns on both drivers."""
    case = grow(seed)
    before = json.dumps(case.state)

    async def turns():
        state = case.state
        for turn in range(2):
            native, langgraph = await run_both(case, state)
            assert native == langgraph, f"seed {seed}, turn {turn}"
            if isinstance(native, str):
                return
            check_rules(case, native)
            state = {**native, "request": {"x": 1}}

    asyncio.run(turns())
    assert json.dumps(case.state) == before


@pytest.mark.parametrize("batch", range(BATCHES))
def test_both_drivers_agree_on_generated_registries(batch):
    """Fifty-two registries, two turns each: equal final states, traces and exceptions, and all rules hold."""
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        compare(seed)


def test_the_generated_registries_reach_every_rule():
    """The claim of agreement is worth something only if stops, failures, depths and exceptions all occur in it."""
    seen: Counter[str] = Counter()
    for seed in range(BATCHES * SIZE):
        case = grow(seed)
        final = asyncio.run(outcome(run_registry(case.registry, case.state, entrypoint="main", **case.options)))
        if isinstance(final, str):
            seen["raised"] += 1
            continue
        for item in final["_internal"].get("decision_trace", []):
            seen.update([item["decision_kind"], str(item["termination_reason"]), f"depth {item['depth']}"])
            seen["failure"] += " raised " in item["reason"]
            seen["dropped"] += "; dropped" in item["reason"]
    wanted = ["NODE", "SUBGRAPH", "STOP_LOCAL", "STOP_GLOBAL", "FALLBACK", "depth 1", "depth 2", "depth 3"]
    wanted += ["max_steps_exceeded", "max_depth_exceeded", "cycle_detected", "allowlist_violation"]
    assert {name: seen[name] for name in [*wanted, "failure", "dropped", "raised"] if seen[name] < 5} == {}


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(seed=st.integers(min_value=10_000, max_value=10_000_000))
def test_the_rules_hold_in_the_native_loop(seed):
    """Two hundred more registries, the native loop alone: every turn ends by the rules."""
    case = grow(seed)
    final = asyncio.run(outcome(run_registry(case.registry, case.state, entrypoint="main", **case.options)))
    if not isinstance(final, str):
        check_rules(case, final)
