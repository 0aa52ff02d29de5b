"""The LangGraph driver: the same steps as nodes of a `StateGraph`, each naming the next by the same rules.

The only file of the project that imports langgraph.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, StateGraph
from langgraph.types import Command

from harness.supervisor import control_flow, kernel, steps
from harness.supervisor.assembly import Assembly
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.scope import Place, Scope
from harness.supervisor.slices import INTERNAL, State
from harness.supervisor.steps import Level

# an interrupt is raised as an exception; taking it for a failure would swallow it
control_flow.let_through(GraphBubbleUp)

Entry = str | tuple[str, Callable[..., Any], Callable[..., Any]]

_CALL_NODE = "call_subgraph__"
_SPARE_STEPS = 10


def node_name(place: Place) -> str:
    """The name of a place in the graph; LangGraph forbids the colons of the route string."""
    if place.kind == "supervisor":
        return f"{place.name}_supervisor"
    return place.name if place.kind == "node" else _CALL_NODE + place.name


class GraphWeaver:
    """Weaves one `StateGraph` for the top level, and one for each subgraph when it is first called."""

    def __init__(self, assembly: Assembly, state_class: type[Any] | None) -> None:
        self._assembly = assembly
        self._schema = _schema(state_class)
        self._children: dict[str, Any] = {}

    def weave(self, level: Scope, entry: Entry | None = None) -> StateGraph[Any]:
        """The graph of one level, not yet compiled.

        Raises:
            RegistryInvalid: two places share a name, or the state class has no room for a slice.
        """
        graph: StateGraph[Any] = StateGraph(self._schema)
        whole = "__root__" in graph.channels
        if not whole:
            _check_room(graph.channels.keys(), level)
        names = {place: node_name(place) for place in _places(level)}
        for place, name in names.items():
            targets = {names[target]: names[target] for target in _targets(level, place)}
            step = self._step(level, place, names, whole=whole)
            graph.add_node(name, step, destinations={**targets, END: END})
            if not targets:
                graph.add_edge(name, END)
        if isinstance(entry, tuple):
            name, node, route = entry
            graph.add_node(name, node)
            graph.set_entry_point(name)
            graph.add_conditional_edges(name, route, {**{target: target for target in names.values()}, END: END})
        elif entry is not None:
            graph.set_entry_point(entry)
        return graph

    def _step(
        self, level: Scope, place: Place, names: dict[Place, str], *, whole: bool
    ) -> Callable[..., Awaitable[Command[Any]]]:
        running = Level(self._assembly, level, self._run_child)

        # A command instead of a conditional edge: LangGraph runs every edge function as a runnable of its own, which
        # made the driver 1.3 times as slow as a graph written by hand; with commands it is as fast.
        async def step(state: Any, config: RunnableConfig) -> Command[Any]:
            before: State = state if isinstance(state, dict) else dict(vars(state))
            after = await steps.take(running, place, before, config)
            target = kernel.next_place(after[INTERNAL], place, level.contracts)
            goto = END if target is None else names[target]
            if whole:
                return Command(update=[("__root__", after)], goto=goto)
            changed = {name: value for name, value in after.items() if before.get(name) is not value}
            return Command(update=changed, goto=goto)

        step.__name__ = names[place]
        return step

    def wrapper(self, level: Scope, place: Place) -> Callable[..., Awaitable[State]]:
        """One place as a plain LangGraph node, for graphs whose edges are drawn by hand.

        A node that a safe stop ended hands back to its supervisor, which stops at once: edges of a hand-made graph are fixed.
        """
        running = Level(self._assembly, level, self._run_child)
        whole = self._schema is dict
        returns = place.kind == "node" and not level.contracts[place.name].is_terminal

        async def step(state: Any, config: RunnableConfig) -> State:
            before: State = state if isinstance(state, dict) else dict(vars(state))
            after = await steps.take(running, place, before, config)
            if returns and after[INTERNAL].get("phase") == kernel.ENDED:
                after = {**after, INTERNAL: {**after[INTERNAL], "phase": kernel.ROUTING}}
            return after if whole else {name: value for name, value in after.items() if before.get(name) is not value}

        step.__name__ = node_name(place)
        return step

    async def _run_child(self, subgraph_id: str, child: State, config: RunnableConfig) -> State:
        compiled = self._children.get(subgraph_id)
        if compiled is None:
            level, entry = self._assembly.level(subgraph_id)
            compiled = self.weave(level, node_name(entry)).compile(name=subgraph_id)
            self._children[subgraph_id] = compiled
        internal = child[INTERNAL]
        left = max(0, internal["budgets"]["max_steps"] - internal["step_count"])
        limited: RunnableConfig = {**config, "recursion_limit": left + _SPARE_STEPS}
        result: State = await compiled.ainvoke(child, limited)
        return result


def _schema(state_class: type[Any] | None) -> Any:
    if state_class is None:
        return dict
    # a dict subclass without annotations has no channels of its own
    return state_class if get_type_hints(state_class) else dict


def _places(level: Scope) -> list[Place]:
    places = [Place("supervisor", name) for name in level.views]
    places += [Place("node", name) for name in level.contracts]
    places += [Place("call", subgraph_id) for subgraph_id in level.subgraphs]
    taken: dict[str, Place] = {}
    for place in places:
        name = node_name(place)
        if place.kind == "node" and level.subgraphs and name.startswith(_CALL_NODE):
            raise RegistryInvalid(f"node name {name!r} uses the reserved prefix {_CALL_NODE!r}", hint="rename the node")
        if name in taken:
            raise RegistryInvalid(
                f"{place.kind} {place.name!r} and {taken[name].kind} {taken[name].name!r} would both be {name!r}",
                hint="rename one of the two",
            )
        taken[name] = place
    return places


def _targets(level: Scope, place: Place) -> list[Place]:
    """Where control may go from a place; what LangGraph draws."""
    if place.kind == "supervisor":
        view = level.views[place.name]
        return [Place("node", node.name) for node in view.nodes] + [Place("call", name) for name in view.subgraphs]
    if place.kind == "call":
        return [Place("supervisor", name) for name in level.views]
    contract = level.contracts[place.name]
    return [] if contract.is_terminal else [Place("supervisor", contract.supervisor)]


def _check_room(channels: Any, level: Scope) -> None:
    needed = {INTERNAL} | {name for contract in level.contracts.values() for name in contract.writes}
    missing = sorted(needed - set(channels))
    if missing:
        raise RegistryInvalid(f"the state class has no field for {missing}", hint="add the slices to the state class")
