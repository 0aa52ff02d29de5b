"""Who can reach whom in a registry: the shape that validation and the picture share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from harness.model.late import dataclass
from harness.supervisor import scope
from harness.supervisor.assembly import Allowlists
from harness.supervisor.decisions import call_route
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.scope import Scope


@dataclass
class Reached:
    """Everything that the top level can get to."""

    nodes: set[str] = field(default_factory=set)
    subgraphs: set[str] = field(default_factory=set)


def roots(registry: NodeRegistry) -> list[str]:
    """The supervisors that no subgraph contains; where subgraphs contain them all, every one."""
    inside: set[str] = set()
    for name in registry.list_subgraphs():
        level = level_of(registry, name)
        inside |= set(level.views) if level is not None else set()
    every = registry.list_supervisors()
    return [name for name in every if name not in inside] or every


def level_of(registry: NodeRegistry, subgraph_id: str) -> Scope | None:
    """The level of a subgraph, or None where it is incomplete."""
    try:
        return scope.of_subgraph(registry, subgraph_id)[0]
    except RegistryInvalid:
        return None


def allows(allowlists: Allowlists, supervisor: str, target: str) -> bool:
    """Whether a supervisor may choose a node or a subgraph id."""
    allowed = allowlists.get(supervisor)
    return allowed is None or target in allowed or call_route(target) in allowed


def calls(level: Scope, allowlists: Allowlists) -> list[tuple[str, str]]:
    """The (supervisor, subgraph) pairs that a level permits."""
    return [
        (supervisor, target)
        for supervisor, view in level.views.items()
        for target in view.subgraphs
        if allows(allowlists, supervisor, target)
    ]


def writes_inside(registry: NodeRegistry, subgraph_id: str) -> set[str]:
    """The slices that the nodes of a subgraph write."""
    level = level_of(registry, subgraph_id)
    return {name for node in level.contracts.values() for name in node.writes} if level is not None else set()


def writes_below(registry: NodeRegistry, subgraph_id: str) -> set[str]:
    """The slices that a subgraph may receive from the others."""
    others = [found[0] for name in registry.list_subgraphs() if (found := registry.get_subgraph(name)) is not None]
    return {name for contract in others if contract.subgraph_id != subgraph_id for name in contract.writes}


def reachable(registry: NodeRegistry, supervisors: Sequence[str], allowlists: Allowlists) -> Reached:
    """Walk from the top level through every permitted call."""
    reached = Reached()
    waiting: list[tuple[Scope, str | None]] = [(scope.root(registry, supervisors, None, hierarchical=True), None)]
    while waiting:
        level, entry = waiting.pop()
        if entry is not None and entry in level.contracts:
            reached.nodes.add(entry)
        reached.nodes |= {
            node.name
            for supervisor, view in level.views.items()
            for node in view.nodes
            if allows(allowlists, supervisor, node.name)
        }
        for _, target in calls(level, allowlists):
            below, found = level_of(registry, target), registry.get_subgraph(target)
            if target not in reached.subgraphs and below is not None and found is not None:
                reached.subgraphs.add(target)
                waiting.append((below, found[0].entrypoint))
    return reached


def call_cycles(registry: NodeRegistry, allowlists: Allowlists) -> list[list[str]]:
    """The shortest loop through each subgraph that can come back to itself, each loop once."""
    edges: dict[str, list[str]] = {}
    for name in registry.list_subgraphs():
        level = level_of(registry, name)
        edges[name] = sorted({target for _, target in calls(level, allowlists)}) if level is not None else []
    found: list[list[str]] = []
    for start in edges:
        loop = _loop(edges, start)
        if loop is not None and not any(set(loop) == set(other) for other in found):
            found.append(loop)
    return found


def _loop(edges: dict[str, list[str]], start: str) -> list[str] | None:
    paths, seen = [[start]], {start}
    while paths:
        path = paths.pop(0)
        for target in edges.get(path[-1], ()):
            if target == start:
                return path
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    return None
