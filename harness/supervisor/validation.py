"""What is wrong with a registry before it runs. Pure: reads contracts, runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Literal

from harness.model.late import dataclass
from harness.supervisor import topology
from harness.supervisor.assembly import Allowlists
from harness.supervisor.contracts import NodeContract, SubgraphContract, SubgraphDefinition
from harness.supervisor.decisions import CALL_PREFIX, DONE
from harness.supervisor.registry import NodeRegistry

_GIVEN = frozenset({"request", "_internal"})
"""Slices that exist without a node writing them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: an `error` cannot work, a `warning` works otherwise than it reads."""

    level: Literal["error", "warning"]
    code: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """Every finding, errors first."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(finding.level == "error" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}


def validate(
    registry: NodeRegistry,
    *,
    supervisors: Sequence[str] | None = None,
    supervisor_allowlists: Allowlists | None = None,
    budgets: Any = None,
    services: Collection[str] | None = None,
) -> Report:
    """Check a registry as a graph over `supervisors` (None: those that no subgraph contains) would use it.

    `budgets=None` means that the caller sets none, so that loops run into the defaults; `services=None` skips the check
    of services.
    """
    roots = topology.roots(registry) if supervisors is None else list(supervisors)
    allowlists = supervisor_allowlists or {}
    found = [
        *_subgraphs(registry),
        *_supervisors(registry, roots, allowlists),
        *_unreachable(registry, roots, allowlists),
        *_slices(registry),
        *_services(registry, services),
    ]
    if budgets is None:
        found += _cycles(registry, roots, allowlists)
    return Report(tuple(sorted(found, key=lambda finding: finding.level != "error")))


def _subgraphs(registry: NodeRegistry) -> Iterator[Finding]:
    owners = set(registry.list_supervisors())
    for name, contract, definition in _all_subgraphs(registry):
        for node in definition.nodes or ():
            if registry.get_contract(node) is None:
                yield Finding("error", "unknown_node", name, f"subgraph {name!r} lists unregistered node {node!r}")
        alone = len(registry.list_subgraphs()) == 1
        for supervisor in definition.supervisors or ():
            if supervisor not in owners and (alone or supervisor != contract.entrypoint):
                message = f"subgraph {name!r} lists supervisor {supervisor!r}, which no node names"
                yield Finding("error" if alone else "warning", "unknown_supervisor", name, message)
        entry = contract.entrypoint
        members = {*owners, *(definition.supervisors or ()), *registry.get_all_nodes()}
        if entry not in members and entry.removesuffix("_supervisor") not in members:
            yield Finding("error", "unknown_entrypoint", name, f"subgraph {name!r} starts at unknown {entry!r}")


def _supervisors(registry: NodeRegistry, roots: Sequence[str], allowlists: Allowlists) -> Iterator[Finding]:
    known = {*roots, *registry.list_supervisors()}
    for _, contract, definition in _all_subgraphs(registry):
        known |= {contract.entrypoint, *(definition.supervisors or ())}
    for root in roots:
        if not registry.get_supervisor_nodes(root) and not registry.list_subgraphs():
            yield Finding("error", "unknown_supervisor", root, f"supervisor {root!r} has no nodes and nothing to call")
    targets = {DONE, *registry.get_all_nodes(), *registry.list_subgraphs()}
    for supervisor, allowed in allowlists.items():
        if supervisor not in known:
            yield Finding("error", "unknown_supervisor", supervisor, f"an allowlist names unknown {supervisor!r}")
        for name in sorted(allowed or ()):
            if name.removeprefix(CALL_PREFIX) not in targets:
                yield Finding(
                    "error", "unknown_target", supervisor, f"the allowlist of {supervisor!r} names unknown {name!r}"
                )


def _unreachable(registry: NodeRegistry, roots: Sequence[str], allowlists: Allowlists) -> Iterator[Finding]:
    reached = topology.reachable(registry, roots, allowlists)
    for name in registry.get_all_nodes():
        if name not in reached.nodes:
            yield Finding("warning", "unreachable_node", name, f"no supervisor of the graph can reach node {name!r}")
    for name in registry.list_subgraphs():
        if name not in reached.subgraphs:
            yield Finding("warning", "unreachable_subgraph", name, f"no supervisor may call subgraph {name!r}")


def _slices(registry: NodeRegistry) -> Iterator[Finding]:
    contracts = _contracts(registry)
    written = {name for contract in contracts for name in contract.writes} | _GIVEN
    for contract in contracts:
        triggers = (key for rule in contract.trigger_conditions for key in (*(rule.when or ()), *(rule.when_not or ())))
        used = {*contract.reads, *(key.split(".")[0] for key in triggers if "." in key)}
        for name in sorted(used - written - {"response"}):
            yield Finding(
                "warning", "never_written", contract.name, f"node {contract.name!r} uses {name!r}, which nobody writes"
            )
    for subgraph_id, subgraph, _ in _all_subgraphs(registry):
        inside = topology.writes_inside(registry, subgraph_id)
        for name in sorted(inside - {*subgraph.writes, "_internal"}):
            message = f"nodes of subgraph {subgraph_id!r} write {name!r}, which its contract does not; it is dropped"
            yield Finding("warning", "undeclared_write", subgraph_id, message)
        for name in sorted(set(subgraph.writes) - inside - topology.writes_below(registry, subgraph_id)):
            message = f"subgraph {subgraph_id!r} declares {name!r}, which nothing in it writes"
            yield Finding("warning", "never_written", subgraph_id, message)


def _services(registry: NodeRegistry, services: Collection[str] | None) -> Iterator[Finding]:
    for contract in _contracts(registry) if services is not None else ():
        for name in contract.services:
            if name not in (services or ()):
                yield Finding(
                    "error", "unknown_service", contract.name, f"node {contract.name!r} needs service {name!r}"
                )


def _cycles(registry: NodeRegistry, roots: Sequence[str], allowlists: Allowlists) -> Iterator[Finding]:
    for cycle in topology.call_cycles(registry, allowlists):
        path = " -> ".join([*cycle, cycle[0]])
        yield Finding(
            "warning",
            "cycle_without_budgets",
            cycle[0],
            f"subgraphs may call each other: {path}; only defaults stop it",
        )
    for contract in _contracts(registry):
        always = any(not rule.when and not rule.when_not for rule in contract.trigger_conditions)
        if always and not contract.is_terminal and contract.supervisor in roots:
            message = f"node {contract.name!r} always matches and never ends; only max_iterations stops it"
            yield Finding("warning", "cycle_without_budgets", contract.name, message)


def _contracts(registry: NodeRegistry) -> list[NodeContract]:
    return [found for name in registry.get_all_nodes() if (found := registry.get_contract(name)) is not None]


def _all_subgraphs(registry: NodeRegistry) -> Iterator[tuple[str, SubgraphContract, SubgraphDefinition]]:
    for name in registry.list_subgraphs():
        found = registry.get_subgraph(name)
        if found is not None:
            yield name, *found
