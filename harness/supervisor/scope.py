"""What one level of a graph contains: its supervisors, their nodes, the subgraphs that may be called, the entry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar, Token
from typing import Literal, NamedTuple

from harness.model.late import dataclass
from harness.supervisor.contracts import NodeContract
from harness.supervisor.decisions import CALL_PREFIX, DONE, call_route
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.registry import NodeRegistry

_SUFFIX = "_supervisor"


class Place(NamedTuple):
    """Where control is: at a supervisor, a node, or a subgraph call."""

    kind: Literal["supervisor", "node", "call"]
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """What one supervisor of a level can reach."""

    supervisor: str
    nodes: tuple[NodeContract, ...]
    contracts: dict[str, NodeContract]
    subgraphs: tuple[str, ...]
    routes: dict[str, str]

    @classmethod
    def of(cls, supervisor: str, nodes: tuple[NodeContract, ...], subgraphs: tuple[str, ...]) -> View:
        routes = {contract.name: contract.name for contract in nodes}
        for subgraph_id in subgraphs:
            routes[subgraph_id] = routes[call_route(subgraph_id)] = call_route(subgraph_id)
        return cls(supervisor, nodes, {node.name: node for node in nodes}, subgraphs, {**routes, DONE: DONE})


Reach = tuple[View, Collection[str] | None]
"""A view with the graph's allowlist for its supervisor."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One level, resolved from a registry."""

    views: dict[str, View]
    contracts: dict[str, NodeContract]
    subgraphs: tuple[str, ...]

    def place(self, name: str) -> Place | None:
        """The place that an entry point names: a node, a supervisor (with or without its suffix), or a call."""
        if name in self.contracts:
            return Place("node", name)
        if name in self.views:
            return Place("supervisor", name)
        if name.removesuffix(_SUFFIX) in self.views:
            return Place("supervisor", name.removesuffix(_SUFFIX))
        called = name.removeprefix(CALL_PREFIX)
        return Place("call", called) if called != name and called in self.subgraphs else None


def root(
    registry: NodeRegistry, supervisors: Sequence[str] | None, nodes: Collection[str] | None, *, hierarchical: bool
) -> Scope:
    """The top level: the named supervisors (None: all that nodes name) with their nodes, thinned by `nodes`."""
    names = registry.list_supervisors() if supervisors is None else supervisors
    return _scope(registry, names, nodes, hierarchical=hierarchical)


def of_subgraph(registry: NodeRegistry, subgraph_id: str) -> tuple[Scope, Place]:
    """The level of a subgraph and the place where it starts.

    Raises:
        RegistryInvalid: the subgraph, one of its nodes or its entry point is unknown.
    """
    found = registry.get_subgraph(subgraph_id)
    if found is None:
        raise RegistryInvalid(f"subgraph {subgraph_id!r} is not registered", hint="call register_subgraph first")
    contract, definition = found
    entry = contract.entrypoint
    members = list(definition.nodes or ())
    if registry.get_contract(entry) is not None and entry not in members:
        members.append(entry)
    supervisors = list(definition.supervisors or ())
    if registry.get_contract(entry) is None:
        supervisors.append(entry.removesuffix(_SUFFIX) if entry.removesuffix(_SUFFIX) in supervisors else entry)
    for name in members:
        member = registry.get_contract(name)
        if member is None:
            raise RegistryInvalid(
                f"subgraph {subgraph_id!r} lists node {name!r}, which is not registered", hint="register the node"
            )
        supervisors.append(member.supervisor)
    allowed = None if definition.nodes is None else members
    scope = _scope(registry, supervisors, allowed, hierarchical=True)
    place = scope.place(entry)
    if place is None:
        raise RegistryInvalid(f"subgraph {subgraph_id!r} has no entry point {entry!r}", hint="name a member")
    return scope, place


def _scope(
    registry: NodeRegistry, supervisors: Sequence[str], nodes: Collection[str] | None, *, hierarchical: bool
) -> Scope:
    subgraphs = tuple(registry.list_subgraphs()) if hierarchical else ()
    views: dict[str, View] = {}
    contracts: dict[str, NodeContract] = {}
    for supervisor in dict.fromkeys(supervisors):
        mine = {
            name: contract
            for name in registry.get_supervisor_nodes(supervisor)
            if (nodes is None or name in nodes) and (contract := registry.get_contract(name)) is not None
        }
        contracts.update(mine)
        views[supervisor] = View.of(supervisor, tuple(mine.values()), subgraphs)
    return Scope(views, contracts, subgraphs)


# A context variable, because a custom supervisor's `run(state, config)` has no room for one more argument, and one
# supervisor object may serve several levels and several tasks at once.
_active: ContextVar[Reach | None] = ContextVar("harness_supervisor_view", default=None)


def open_view(view: View, allowlist: Collection[str] | None) -> Token[Reach | None]:
    """Let the supervisor that runs next in this task see this view, until the token is closed."""
    return _active.set((view, allowlist))


def close_view(token: Token[Reach | None]) -> None:
    _active.reset(token)


def view_for(supervisor: str, registry: NodeRegistry) -> Reach:
    """The view of the level that is running and the graph's allowlist, or the whole registry where none is running."""
    active = _active.get()
    if active is not None and active[0].supervisor == supervisor:
        return active
    return _scope(registry, [supervisor], None, hierarchical=True).views[supervisor], None
