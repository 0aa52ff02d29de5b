"""The three steps of every driver: ask a supervisor, run a node, call a subgraph. State in, state out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from harness.model.late import dataclass
from harness.model.supervision import Verdict
from harness.supervisor import boundary, control_flow, kernel, scope
from harness.supervisor.assembly import Assembly
from harness.supervisor.contracts import SubgraphContract
from harness.supervisor.records import Budgets
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.scope import Place, Scope
from harness.supervisor.slices import INTERNAL, RESPONSE, Internal, State, internal_of

RunChild = Callable[[str, State, Any], Awaitable[State]]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a graph that is being run, and its driver's way to run a level below."""

    assembly: Assembly
    scope: Scope
    run_child: RunChild


async def take(level: Level, here: Place, state: State, config: Any) -> State:
    """Take the step that belongs to a place."""
    assembly = level.assembly
    state = _arrived(
        state, here, level.scope.views, hierarchical=assembly.hierarchical, guarded=bool(assembly.allowlists)
    )
    internal = kernel.step(internal_of(state))
    if here.kind == "supervisor":
        return await _ask(level, here.name, state, internal, config)
    if here.kind == "node":
        return await _work(level, here.name, state, internal, config)
    return await _call(level, here.name, state, internal, config)


async def _ask(level: Level, name: str, state: State, internal: Internal, config: Any) -> State:
    stop = kernel.over_steps(internal, name, None)
    if stop is not None:
        return kernel.apply(state, internal, stop)
    assembly, view = level.assembly, level.scope.views[name]
    token = scope.open_view(view, assembly.allowlists.get(name))
    try:
        supervisor = assembly.supervisor(name)
        updates = await supervisor.run({**state, INTERNAL: internal}, config=config)
    except Exception as error:
        if control_flow.is_signal(error) or not kernel.depth(internal):
            raise
        return _broken(state, internal, name, name, error)
    finally:
        scope.close_view(token)
    state, internal, answer = kernel.answered(state, internal, name, updates if isinstance(updates, dict) else {})
    return kernel.apply(state, internal, kernel.judge(internal, view, assembly.allowlist(name, supervisor), answer))


async def _work(level: Level, name: str, state: State, internal: Internal, config: Any) -> State:
    contract = level.scope.contracts[name]
    stop = kernel.over_steps(internal, contract.supervisor, name)
    if stop is not None:
        return kernel.apply(state, internal, stop)
    try:
        updates = await level.assembly.node(contract)({**state, INTERNAL: internal}, config=config)
    except Exception as error:
        if control_flow.is_signal(error) or not kernel.depth(internal):
            raise
        return _broken(state, internal, contract.supervisor, name, error)
    return kernel.finish_node(state, internal, contract, updates if isinstance(updates, dict) else {})


async def _call(level: Level, subgraph_id: str, state: State, internal: Internal, config: Any) -> State:
    caller = internal.get("last_supervisor")
    stop = kernel.over_steps(internal, caller, subgraph_id) or kernel.over_call(internal, caller, subgraph_id)
    if stop is not None:
        return kernel.apply(state, internal, stop)
    contract, supervisors, entered = _enter(level.assembly, subgraph_id, internal)
    child = boundary.child_state(contract, state, entered)
    problem = boundary.input_problem(contract, child)
    if problem is not None:
        return _refused(state, kernel.visited(internal, entered), subgraph_id, "input_schema", problem)
    try:
        after = await level.run_child(subgraph_id, child, config)
    except Exception as error:
        if control_flow.is_signal(error):
            raise
        return _refused(state, kernel.visited(internal, entered), subgraph_id, type(error).__name__, str(error))
    left = kernel.leave(internal, internal_of(after), supervisors)
    return _returned(contract, state, left, child, after)


def _enter(assembly: Assembly, subgraph_id: str, internal: Internal) -> tuple[SubgraphContract, list[str], Internal]:
    found = assembly.registry.get_subgraph(subgraph_id)
    if found is None:
        raise RegistryInvalid(f"subgraph {subgraph_id!r} is not registered", hint="call register_subgraph first")
    below, _ = assembly.level(subgraph_id)
    return found[0], list(below.views), kernel.enter(internal, subgraph_id, below.views)


def _returned(contract: SubgraphContract, state: State, internal: Internal, before: State, after: State) -> State:
    """Take over what the child gave, unless it finished and its output is not what it promised."""
    finished = internal["phase"] != kernel.ENDED and kernel.FAILURE not in internal
    problem = boundary.output_problem(contract, after) if finished else None
    if problem is not None:
        return _refused(state, internal, contract.subgraph_id, "output_schema", problem)
    dropped = boundary.undeclared(contract, before, after) if finished else []
    if dropped:
        why = f"subgraph {contract.subgraph_id!r} wrote {dropped}, which its contract does not declare; dropped"
        internal = kernel.recorded(
            internal, Verdict("FALLBACK", internal.get("last_supervisor"), contract.subgraph_id, why)
        )
    return kernel.closed({**boundary.returned(contract, state, before, after), INTERNAL: internal})


def _broken(state: State, internal: Internal, supervisor: str, target: str, error: Exception) -> State:
    """An exception below the top: the level ends, and its parent sees a failure that it can route on."""
    why = f"{target!r} raised {type(error).__name__}: {error}"
    failure = {
        "subgraph_id": internal["call_stack"][-1]["subgraph_id"],
        "node": target,
        "error": type(error).__name__,
        "message": str(error),
    }
    return kernel.failed(state, internal, Verdict("FALLBACK", supervisor, target, why), failure)


def _refused(state: State, internal: Internal, subgraph_id: str, kind: str, message: str) -> State:
    """A call that broke at the boundary: the caller sees a failure that it can route on."""
    verdict = Verdict("FALLBACK", internal.get("last_supervisor"), subgraph_id, f"{kind} of {subgraph_id!r}: {message}")
    failure = {"subgraph_id": subgraph_id, "node": subgraph_id, "error": kind, "message": message}
    return kernel.call_failed(state, internal, verdict, failure)


def _arrived(state: State, here: Place, supervisors: Iterable[str], *, hierarchical: bool, guarded: bool) -> State:
    """The state as this step may use it: unchanged within a turn, with fresh counters at the start of one.

    Counting and tracing are on with subgraphs or budgets, tracing also with allowlists (`guarded`); a flat graph
    without any of them keeps the few keys that it always had. The phase tells a first step from a later one: a
    supervisor expects `routing`, and found at `acting` the turn before it was abandoned (an exception, or an interrupt
    that was never resumed).
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
