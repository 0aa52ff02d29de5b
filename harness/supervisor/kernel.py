"""The rules of hierarchical execution: pure functions over plain dicts, the same for every driver.

A rule *decides* (`over_steps`, `over_call`, `judge`: state in, `Verdict` out), and one function *evolves* the
bookkeeping by a verdict (`apply`). A level ends when the phase is `returning`; the whole turn when it is `ended`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from harness.model import supervision
from harness.model.supervision import Verdict
from harness.supervisor.contracts import NodeContract
from harness.supervisor.decisions import CALL_PREFIX, DONE, HierarchicalDecision, call_route
from harness.supervisor.scope import Place, View
from harness.supervisor.slices import INTERNAL, RESPONSE, Internal, State, internal_of, merged

ROUTING: Final = "routing"  # a supervisor is next
ACTING: Final = "acting"  # what the supervisor chose is next
RETURNING: Final = "returning"  # this level is over, its parent goes on
ENDED: Final = "ended"  # the turn is over

NOTE: Final = "routing_note"
SUGGESTION: Final = "suggestion"
FAILURE: Final = "child_failure"

OWNED: Final = frozenset(
    {
        "call_stack", "budgets", "decision_trace", "visited_subgraphs", "step_count",
        "phase", "last_supervisor", NOTE, SUGGESTION, FAILURE,
    }
)  # fmt: skip
"""Keys of `_internal` that only the kernel writes; a node or supervisor that returns them changes nothing."""


def depth(internal: Internal) -> int:
    return len(internal.get("call_stack") or ())


# --- decide -----------------------------------------------------------------------------------------------------------


def over_steps(internal: Internal, supervisor: str | None, target: str | None) -> Verdict | None:
    """The stop that this step is, if it is one too many."""
    budgets = internal.get("budgets")
    if budgets is None:
        return None
    return supervision.over_steps(internal["step_count"], budgets["max_steps"], supervisor, target)


def over_call(internal: Internal, supervisor: str | None, subgraph_id: str) -> Verdict | None:
    """The stop that calling this subgraph now is, if it goes too deep or comes too often."""
    budgets = internal["budgets"]
    level, visits = depth(internal) + 1, internal["visited_subgraphs"].get(subgraph_id, 0) + 1
    return supervision.over_depth(level, budgets["max_depth"], supervisor, subgraph_id) or supervision.over_reentry(
        visits, budgets["max_reentry"], supervisor, subgraph_id
    )


def judge(internal: Internal, view: View, allowlist: Collection[str] | None, answer: Internal) -> Verdict:
    """What a supervisor's answer (the `_internal` that it returned) amounts to."""
    decision, note = answer.get("decision"), answer.get(NOTE)
    note = note if isinstance(note, dict) else {}
    name, reason, kind = view.supervisor, note.get("reason"), note.get("kind")
    if isinstance(decision, HierarchicalDecision):
        kind, reason = decision.decision_kind, decision.reason or reason
        decision = decision.route
    if not isinstance(decision, str) or not decision or (decision == DONE and kind in {"NODE", "SUBGRAPH"}):
        return Verdict("FALLBACK", name, None, str(reason or f"supervisor {name!r} gave no decision"))
    bare = decision.removeprefix(CALL_PREFIX)
    if decision != DONE and (allowlist is None or decision not in allowlist):
        stop = supervision.off_allowlist(allowlist, name, bare, str(reason or ""))
        if stop is not None:
            return stop
    route = view.routes.get(decision)
    if route is None:
        return Verdict("FALLBACK", name, bare, f"{decision!r} is not a target of supervisor {name!r} at this level")
    why = str(reason or f"supervisor {name!r} chose {bare!r}")
    if route != DONE:
        return Verdict("SUBGRAPH" if route.startswith(CALL_PREFIX) else "NODE", name, bare, why)
    if kind == "FALLBACK":
        return Verdict("FALLBACK", name, DONE, why)
    return Verdict(kind if kind == "STOP_GLOBAL" else supervision.end_of_level(depth(internal)), name, DONE, why)


def next_place(internal: Internal, here: Place, contracts: dict[str, NodeContract]) -> Place | None:
    """Where control goes from here on this level, or None where the level is over."""
    phase = internal.get("phase")
    if phase == ACTING and here.kind == "supervisor":
        route: str = internal["decision"]
        if route.startswith(CALL_PREFIX):
            return Place("call", route.removeprefix(CALL_PREFIX))
        return Place("node", route)
    if phase != ROUTING:
        return None
    if here.kind == "node":
        return Place("supervisor", contracts[here.name].supervisor)
    caller = internal.get("last_supervisor")
    return Place("supervisor", caller) if isinstance(caller, str) else None


# --- evolve -----------------------------------------------------------------------------------------------------------


def step(internal: Internal) -> Internal:
    """Count one step, where steps are counted."""
    if "step_count" not in internal:
        return internal
    return {**internal, "step_count": internal["step_count"] + 1}


def apply(state: State, internal: Internal, verdict: Verdict) -> State:
    """The state after a verdict: trace, route, phase, and on a safe stop the terminal response."""
    internal = recorded(internal, verdict)
    internal["phase"] = _phase_after(verdict, internal)
    if verdict.kind == "SUBGRAPH" and verdict.target is not None:
        internal["decision"] = call_route(verdict.target)
    else:
        internal["decision"] = verdict.target if verdict.kind == "NODE" else DONE
    new = {**state, INTERNAL: internal}
    return new if verdict.termination is None else closed(new)


def recorded(internal: Internal, verdict: Verdict) -> Internal:
    """The bookkeeping with one more trace item, where a trace is kept or a safe stop begins one; a new mapping."""
    internal = {**internal}
    trace = internal.get("decision_trace")
    if trace is not None or verdict.termination is not None:
        item = {
            "step": internal.get("step_count", 0),
            "depth": depth(internal),
            "supervisor": verdict.supervisor,
            "decision_kind": verdict.kind,
            "target": verdict.target,
            "reason": verdict.reason,
            "termination_reason": verdict.termination,
        }
        internal["decision_trace"] = [*(trace or ()), item]
    return internal


def _phase_after(verdict: Verdict, internal: Internal) -> str:
    if verdict.kind in {"NODE", "SUBGRAPH"}:
        return ACTING
    return ENDED if verdict.kind == "STOP_GLOBAL" else over(internal)


def over(internal: Internal) -> str:
    """The phase of a level that is over: a child returns, the top ends the turn."""
    return RETURNING if depth(internal) else ENDED


def closed(state: State) -> State:
    """At the top, a turn that a safe stop ended answers `terminal`; an answer that is already there is kept."""
    internal = internal_of(state)
    reason = stopped_by(internal)
    if reason is None or depth(internal):
        return state
    response = state.get(RESPONSE)
    response = (
        {**response, "response_type": "terminal"} if isinstance(response, dict) else {"response_type": "terminal"}
    )
    if not response.get("response_message"):
        response["response_message"] = reason
    return {**state, RESPONSE: response}


def stopped_by(internal: Internal) -> str | None:
    """The termination reason of an ended turn, if a safe stop ended it."""
    trace = internal.get("decision_trace")
    if internal.get("phase") != ENDED or not trace:
        return None
    reason: str | None = trace[-1]["termination_reason"]
    return reason


def finish_node(state: State, internal: Internal, contract: NodeContract, updates: dict[str, Any]) -> State:
    """The state after a node: its slices merged, its own bookkeeping ignored, a failure before it dealt with."""
    after = {**internal, "phase": over(internal) if contract.is_terminal else ROUTING}
    after.pop(FAILURE, None)
    written = updates.get(INTERNAL)
    if isinstance(written, dict):
        after.update((key, value) for key, value in written.items() if key not in OWNED)
        hint = written.get("decision")
        if isinstance(hint, str) and hint not in {contract.name, DONE} and not contract.is_terminal:
            after[SUGGESTION] = hint
    new = {**state, INTERNAL: after}
    for name, update in updates.items():
        if name != INTERNAL:
            new[name] = merged(state.get(name), update)
    return new


def answered(
    state: State, internal: Internal, supervisor: str, updates: dict[str, Any]
) -> tuple[State, Internal, Internal]:
    """A supervisor's updates taken over: the new state and bookkeeping, and its answer for `judge`."""
    answer = updates.get(INTERNAL)
    answer = answer if isinstance(answer, dict) else {}
    kept = {key: value for key, value in answer.items() if key not in OWNED and key != "decision"}
    kept_internal = {**internal, **kept}
    kept_internal.pop(SUGGESTION, None)
    if "decision_trace" in kept_internal:
        kept_internal["last_supervisor"] = supervisor
    new = dict(state)
    for name, update in updates.items():
        if name != INTERNAL:
            new[name] = merged(state.get(name), update)
    return new, kept_internal, answer


def enter(internal: Internal, subgraph_id: str, supervisors: Iterable[str]) -> Internal:
    """The child's bookkeeping: one frame more, one visit more, its supervisors' iterations at zero."""
    caller, level = internal.get("last_supervisor"), depth(internal) + 1
    frame = {
        "subgraph_id": subgraph_id,
        "depth": level,
        "entry_step": internal["step_count"],
        "locals": {"parent_supervisor": caller},
    }
    visited = internal["visited_subgraphs"]
    child = {
        **internal,
        "phase": ROUTING,
        "call_stack": [*internal["call_stack"], frame],
        "visited_subgraphs": {**visited, subgraph_id: visited.get(subgraph_id, 0) + 1},
        **{f"{name}_iteration": 0 for name in supervisors},
    }
    child.pop(FAILURE, None)
    return child


def leave(parent: Internal, child: Internal, supervisors: Iterable[str]) -> Internal:
    """The parent's bookkeeping after its child: what the child counted stays, the frame and its iterations go."""
    private = OWNED | {"decision"} | {f"{name}_iteration" for name in supervisors}
    after = {**parent, **{key: value for key, value in child.items() if key not in private}}
    after |= {key: child[key] for key in ("decision_trace", "visited_subgraphs", "step_count")}
    after.pop(FAILURE, None)
    if FAILURE in child:
        after[FAILURE] = child[FAILURE]
    if child.get("phase") == ENDED:
        return {**after, "phase": ENDED, "decision": DONE}
    return {**after, "phase": after_call(parent)}


def visited(parent: Internal, child: Internal) -> Internal:
    """The parent's bookkeeping with the visit counted, for a call that did not come back by itself."""
    return {**parent, "visited_subgraphs": child["visited_subgraphs"]}


def after_call(parent: Internal) -> str:
    """The phase after a call: back to the supervisor that made it; a call that nobody made ends its level."""
    return ROUTING if isinstance(parent.get("last_supervisor"), str) else over(parent)


def failed(state: State, internal: Internal, verdict: Verdict, failure: dict[str, str]) -> State:
    """The state after something broke below the top: traced, noted for the parent to route on, this level over."""
    return apply(state, {**internal, FAILURE: failure}, verdict)


def call_failed(state: State, internal: Internal, verdict: Verdict, failure: dict[str, str]) -> State:
    """The state after a call that broke at the boundary: traced and noted; the caller is next."""
    after = recorded({**internal, FAILURE: failure}, verdict)
    after["phase"] = after_call(internal)
    return {**state, INTERNAL: after}
