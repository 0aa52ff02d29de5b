"""`GraphBuilder` and `build_graph_from_registry`: the doors to the LangGraph driver, which is imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from harness.errors import EnvironmentProblem
from harness.supervisor import kernel, scope
from harness.supervisor.assembly import Allowlists, Assembly, SupervisorFactory
from harness.supervisor.contracts import NodeContract
from harness.supervisor.decisions import DONE, call_route
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.scope import Place, Scope
from harness.supervisor.slices import State, internal_of

if TYPE_CHECKING:
    from harness.supervisor.drivers.langgraph import Entry, GraphWeaver

_END: Final = "__end__"  # langgraph's END, which is not imported for a name


class GraphBuilder:
    """Puts a graph together supervisor by supervisor, for people who draw some of its edges themselves.

    `build` gives the graph that `build_graph_from_registry` gives. The `create_*` methods give its parts: wrappers are LangGraph
    nodes, routing functions go to `add_conditional_edges`.
    """

    def __init__(  # noqa: PLR0917 - the seed's signature
        self,
        registry: NodeRegistry | None = None,
        state_class: type[Any] | None = None,
        llm_provider: Callable[[], Any] | None = None,
        dependency_provider: Callable[[NodeContract], Mapping[str, Any]] | None = None,
        supervisor_factory: SupervisorFactory | None = None,
        llm: Any = None,
        enable_subgraphs: bool = False,
        supervisor_allowlists: Allowlists | None = None,
        node_allowlist: Collection[str] | None = None,
        services: Mapping[str, Any] | None = None,
    ) -> None:
        self.registry = registry if registry is not None else NodeRegistry()
        self.state_class = state_class
        self.supervisor_names: list[str] = []
        self.node_allowlist = node_allowlist
        self._own_llms: dict[str, Any] = {}
        self._own_services: dict[str, Mapping[str, Any]] = {}
        self._assembly = Assembly(
            registry=self.registry,
            llm=llm,
            llm_provider=llm_provider,
            dependency_provider=dependency_provider,
            supervisor_factory=supervisor_factory,
            allowlists=supervisor_allowlists or {},
            services=services or {},
            hierarchical=enable_subgraphs,
            own_llms=self._own_llms,
            own_services=self._own_services,
        )
        self._weaver: GraphWeaver | None = None

    def add_supervisor(self, name: str, llm: Any = None, **services: Any) -> Self:
        """Adds a supervisor with its nodes; `llm` and `services` are theirs alone."""
        if name not in self.supervisor_names:
            self.supervisor_names.append(name)
        if llm is not None:
            self._own_llms[name] = llm
        self._own_services[name] = services
        return self

    def build(self, entrypoint: Entry | None = None) -> Any:
        """The `StateGraph` of everything that was added, not yet compiled.

        Raises:
            RegistryInvalid: a subgraph is incomplete, two names collide, or the state class lacks a slice.
            EnvironmentProblem: langgraph is not installed.
        """
        level = self._level()
        for subgraph_id in level.subgraphs:
            self._assembly.level(subgraph_id)
        return self._weave().weave(level, entrypoint)

    def build_routing_map(self, supervisor_name: str) -> dict[str, str]:
        """From every route of a supervisor to the graph's node of it; `done` leads to the end."""
        view = self._view(supervisor_name)
        calls = {call_route(name): f"call_subgraph__{name}" for name in view.subgraphs}
        return {**{node.name: node.name for node in view.nodes}, **calls, DONE: _END}

    def create_routing_function(self, supervisor_name: str) -> Callable[[State], str]:
        """What follows the supervisor: a key of its routing map."""
        level, here = self._level(), Place("supervisor", self._view(supervisor_name).supervisor)

        def route(state: State) -> str:
            target = kernel.next_place(internal_of(state), here, level.contracts)
            if target is None:
                return DONE
            return call_route(target.name) if target.kind == "call" else target.name

        route.__name__ = f"route_after_{supervisor_name}_supervisor"
        return route

    def create_call_subgraph_return_router(self) -> Callable[[State], str]:
        """What follows a subgraph call: the supervisor that made it, or the end."""

        def route_after_call_subgraph(state: State) -> str:
            internal = internal_of(state)
            caller = internal.get("last_supervisor")
            going = internal.get("phase") == kernel.ROUTING and isinstance(caller, str)
            return f"{caller}_supervisor" if going else _END

        return route_after_call_subgraph

    def create_supervisor_wrapper(self, supervisor_name: str) -> Callable[..., Any]:
        """The supervisor as a LangGraph node."""
        return self._wrapped(Place("supervisor", self._view(supervisor_name).supervisor))

    def create_node_wrapper(self, node_name: str) -> Callable[..., Any]:
        """A node of an added supervisor as a LangGraph node; after it goes its supervisor, or the end if it is terminal."""
        if node_name not in self._level().contracts:
            raise RegistryInvalid(f"node {node_name!r} is no part of the graph", hint="add its supervisor first")
        return self._wrapped(Place("node", node_name))

    def create_call_subgraph_wrapper(self, subgraph_id: str) -> Callable[..., Any]:
        """A subgraph call as a LangGraph node."""
        self._assembly.level(subgraph_id)
        return self._wrapped(Place("call", subgraph_id))

    def _wrapped(self, place: Place) -> Callable[..., Any]:
        return self._weave().wrapper(self._level(), place)

    def _level(self) -> Scope:
        hierarchical = self._assembly.hierarchical
        return scope.root(self.registry, self.supervisor_names, self.node_allowlist, hierarchical=hierarchical)

    def _view(self, supervisor: str) -> scope.View:
        view = self._level().views.get(supervisor)
        if view is None:
            raise RegistryInvalid(f"supervisor {supervisor!r} was not added", hint="call add_supervisor first")
        return view

    def _weave(self) -> GraphWeaver:
        if self._weaver is None:
            self._weaver = _weaver(self._assembly, self.state_class)
        return self._weaver


def build_graph_from_registry(  # noqa: PLR0917 - the seed's signature
    registry: NodeRegistry,
    llm: Any = None,
    llm_provider: Callable[[], Any] | None = None,
    dependency_provider: Callable[[NodeContract], Mapping[str, Any]] | None = None,
    supervisor_factory: SupervisorFactory | None = None,
    entrypoint: Entry | None = None,
    supervisors: Sequence[str] | None = None,
    state_class: type[Any] | None = None,
    enable_subgraphs: bool = False,
    supervisor_allowlists: Allowlists | None = None,
    node_allowlist: Collection[str] | None = None,
    **services: Any,
) -> Any:
    """A LangGraph `StateGraph`, not yet compiled, with a node `<name>_supervisor` for each supervisor.

    The caller sets the entry point (or passes its name as `entrypoint`), compiles and invokes. Without a `state_class`
    the whole state is one dict; a TypedDict needs a field for `_internal` and for every slice that nodes write.

    Raises:
        RegistryInvalid: a subgraph is incomplete, two names collide, or the state class lacks a slice.
        EnvironmentProblem: langgraph is not installed.
    """
    builder = GraphBuilder(
        registry=registry,
        state_class=state_class,
        llm_provider=llm_provider,
        dependency_provider=dependency_provider,
        supervisor_factory=supervisor_factory,
        llm=llm,
        enable_subgraphs=enable_subgraphs,
        supervisor_allowlists=supervisor_allowlists,
        node_allowlist=node_allowlist,
        services=services,
    )
    for name in registry.list_supervisors() if supervisors is None else supervisors:
        builder.add_supervisor(name)
    return builder.build(entrypoint)


def _weaver(assembly: Assembly, state_class: type[Any] | None) -> GraphWeaver:
    try:
        from harness.supervisor.drivers.langgraph import GraphWeaver  # noqa: PLC0415 - 0.9 s, and an extra
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            f"the LangGraph driver needs {error.name}", hint="pip install 'orchestrix-harness[langgraph]'"
        ) from error
    return GraphWeaver(assembly, state_class)
