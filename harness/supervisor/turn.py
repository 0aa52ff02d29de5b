"""Turns: counters belong to one invocation, so the first step of a turn starts them afresh.

The phase tells a first step from a later one. A supervisor expects `routing`; found at `acting`, the turn before it was
abandoned between a decision and its target (an exception, or an interrupt that was never resumed).
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.supervisor import kernel
from harness.supervisor.records import Budgets
from harness.supervisor.scope import Place
from harness.supervisor.slices import INTERNAL, RESPONSE, Internal, State, internal_of


def arrive(state: State, here: Place, supervisors: Iterable[str], *, hierarchical: bool, guarded: bool) -> State:
    """The state as this step may use it: unchanged within a turn, with fresh counters at the start of one.

    Counting and tracing are on with subgraphs or budgets, tracing also with allowlists (`guarded`); a flat graph
    without any of them keeps the few keys that it always had.
    """
    old = internal_of(state)
    phase = old.get("phase")
    if phase == kernel.ROUTING or (phase == kernel.ACTING and here.kind != "supervisor"):
        return state
    dropped = kernel.OWNED | {f"{name}_iteration" for name in supervisors}
    fresh: Internal = {key: value for key, value in old.items() if key not in dropped}
    fresh["phase"] = kernel.ROUTING
    limited = hierarchical or old.get("budgets") is not None
    if limited:
        fresh["budgets"] = Budgets.of(old.get("budgets")).as_dict()
    if limited or guarded:
        fresh |= {"call_stack": [], "decision_trace": [], "visited_subgraphs": {}, "step_count": 0}
    return {**_without_stale_stop(state, old), INTERNAL: fresh}


def _without_stale_stop(state: State, old: Internal) -> State:
    """A safe stop of the last turn must not end this one: its `terminal` goes, and its reason where that was all."""
    reason = kernel.stopped_by(old)
    response = state.get(RESPONSE)
    if reason is None or not isinstance(response, dict) or response.get("response_type") != "terminal":
        return state
    stale = {"response_type"} | ({"response_message"} if response.get("response_message") == reason else set())
    return {**state, RESPONSE: {key: value for key, value in response.items() if key not in stale}}
