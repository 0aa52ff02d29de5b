"""The registry: every node class and subgraph by name, with the refusals that keep names unambiguous."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from harness.supervisor import triggers
from harness.supervisor.contracts import NodeContract, SubgraphContract, SubgraphDefinition
from harness.supervisor.decisions import CALL_PREFIX, DONE
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.slices import State
from harness.supervisor.triggers import TriggerMatch

_log = logging.getLogger("harness.supervisor")


class NodeRegistry:
    """Holds node classes and subgraphs; `valid_slices` only decides which unknown slice names are logged."""

    def __init__(self, valid_slices: Iterable[str] | None = None) -> None:
        self._nodes: dict[str, type[Any]] = {}
        self._contracts: dict[str, NodeContract] = {}
        self._by_supervisor: dict[str, list[str]] = {}
        self._subgraphs: dict[str, tuple[SubgraphContract, SubgraphDefinition]] = {}
        self._valid_slices = set(valid_slices or ("request", "response", "_internal"))

    def register(self, node_class: type[Any]) -> None:
        """Add a node class.

        Raises:
            RegistryInvalid: no contract, a reserved name, or a name that is taken.
        """
        contract = getattr(node_class, "CONTRACT", None)
        if not isinstance(contract, NodeContract):
            raise RegistryInvalid(f"{node_class.__name__} must have CONTRACT", hint="set CONTRACT = NodeContract(...)")
        name = contract.name
        if name.startswith(CALL_PREFIX):
            raise RegistryInvalid(
                f"node name {name!r} uses the reserved prefix {CALL_PREFIX!r}", hint="rename the node"
            )
        if name == DONE:
            raise RegistryInvalid(f"node name {name!r} is reserved: it ends a level", hint="rename the node")
        if name in self._nodes:
            raise RegistryInvalid(f"node {name!r} is already registered", hint="rename one of the two")
        if name in self._subgraphs:
            raise RegistryInvalid(f"node {name!r} conflicts with registered subgraph {name!r}", hint="rename one")
        self._report_unknown(name, [*contract.reads, *contract.writes])
        self._nodes[name] = node_class
        self._contracts[name] = contract
        self._by_supervisor.setdefault(contract.supervisor, []).append(name)

    def register_subgraph(self, contract: SubgraphContract, definition: SubgraphDefinition) -> None:
        """Add a subgraph.

        Raises:
            RegistryInvalid: two different ids, a reserved id, or an id that is taken.
        """
        name = contract.subgraph_id
        if name != definition.subgraph_id:
            raise RegistryInvalid(
                f"subgraph_id mismatch: contract {name!r}, definition {definition.subgraph_id!r}",
                hint="give both the same subgraph_id",
            )
        if name.startswith(CALL_PREFIX):
            raise RegistryInvalid(f"subgraph id {name!r} uses the reserved prefix {CALL_PREFIX!r}", hint="drop it")
        if name == DONE:
            raise RegistryInvalid(f"subgraph id {name!r} is reserved: it ends a level", hint="rename the subgraph")
        if name in self._nodes:
            raise RegistryInvalid(f"subgraph {name!r} conflicts with registered node {name!r}", hint="rename one")
        if name in self._subgraphs:
            raise RegistryInvalid(f"subgraph {name!r} is already registered", hint="rename one of the two")
        self._report_unknown(name, [*contract.reads, *contract.writes])
        self._subgraphs[name] = (contract, definition)

    def add_valid_slice(self, slice_name: str) -> None:
        self._valid_slices.add(slice_name)

    def _report_unknown(self, owner: str, slices: list[str]) -> None:
        for name in sorted(set(slices) - self._valid_slices):
            _log.debug("%s uses slice %r, which is not among the registry's valid slices", owner, name)

    def get_node_class(self, name: str) -> type[Any] | None:
        return self._nodes.get(name)

    def get_contract(self, name: str) -> NodeContract | None:
        return self._contracts.get(name)

    def get_all_nodes(self) -> list[str]:
        return list(self._nodes)

    def get_supervisor_nodes(self, supervisor: str) -> list[str]:
        return list(self._by_supervisor.get(supervisor, ()))

    def list_supervisors(self) -> list[str]:
        """Every supervisor that a registered node names, in order of registration."""
        return list(self._by_supervisor)

    def get_subgraph(self, subgraph_id: str) -> tuple[SubgraphContract, SubgraphDefinition] | None:
        return self._subgraphs.get(subgraph_id)

    def list_subgraphs(self) -> list[str]:
        return list(self._subgraphs)

    def evaluate_triggers(self, supervisor: str, state: State) -> list[TriggerMatch]:
        """The matching nodes of a supervisor, best first."""
        return triggers.evaluate((self._contracts[name] for name in self._by_supervisor.get(supervisor, ())), state)

    def export_contracts(self) -> dict[str, dict[str, Any]]:
        return {name: contract.model_dump() for name, contract in self._contracts.items()}

    def export_subgraphs(self) -> dict[str, dict[str, Any]]:
        return {
            name: {"contract": contract.model_dump(), "definition": definition.model_dump()}
            for name, (contract, definition) in self._subgraphs.items()
        }
