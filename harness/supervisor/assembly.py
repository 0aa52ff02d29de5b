"""How supervisors and nodes come into being for a graph: providers, factory, services, allowlists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any, Protocol

from harness.model.late import dataclass
from harness.supervisor import scope
from harness.supervisor.contracts import NodeContract
from harness.supervisor.generic import GenericSupervisor
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.scope import Place, Scope
from harness.supervisor.slices import State


class Supervisor(Protocol):
    """Anything that decides: `run` returns `{"_internal": {"decision": route}}` and may return other slices."""

    async def run(self, state: State, config: Any = None) -> dict[str, Any]: ...


SupervisorFactory = Callable[[str, Any], Supervisor]
Allowlists = Mapping[str, Collection[str] | None]


@dataclass(frozen=True)
class Assembly:
    """The parts of a graph.

    Objects are made once where nothing provides them anew; with a provider or factory, once for each step, so that a
    provider may hand out what belongs to the moment. `own_llms` and `own_services` are those of single supervisors.
    """

    registry: NodeRegistry
    llm: Any = None
    llm_provider: Callable[[], Any] | None = None
    dependency_provider: Callable[[NodeContract], Mapping[str, Any]] | None = None
    supervisor_factory: SupervisorFactory | None = None
    allowlists: Allowlists = field(default_factory=dict)
    services: Mapping[str, Any] = field(default_factory=dict)
    hierarchical: bool = False
    own_llms: Mapping[str, Any] = field(default_factory=dict)
    own_services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _made: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False, compare=False)
    _levels: dict[str, tuple[Scope, Place]] = field(default_factory=dict, repr=False, compare=False)

    def supervisor(self, name: str) -> Supervisor:
        if self.supervisor_factory is not None:
            return self.supervisor_factory(name, self._model(name))
        if self.llm_provider is not None:
            return GenericSupervisor(name, llm=self._model(name), registry=self.registry)
        made: Supervisor | None = self._made.get(("supervisor", name))
        if made is None:
            made = self._made["supervisor", name] = GenericSupervisor(
                name, llm=self._model(name), registry=self.registry
            )
        return made

    def node(self, contract: NodeContract) -> Callable[..., Any]:
        """A node object, callable with a state.

        Raises:
            RegistryInvalid: no class is registered under the contract's name.
        """
        made: Callable[..., Any] | None = self._made.get(("node", contract.name))
        if made is not None:
            return made
        node_class = self.registry.get_node_class(contract.name)
        if node_class is None:
            raise RegistryInvalid(f"node {contract.name!r} is not registered", hint="call register first")
        provided = self.dependency_provider(contract) if self.dependency_provider is not None else {}
        llm = self._model(contract.supervisor) if self.llm_provider is None or contract.requires_llm else None
        services = {**self.services, **self.own_services.get(contract.supervisor, {}), **provided}
        node: Callable[..., Any] = node_class(llm=llm, **services)
        if self.dependency_provider is None and self.llm_provider is None:
            self._made["node", contract.name] = node
        return node

    def allowlist(self, name: str, supervisor: Supervisor) -> Collection[str] | None:
        """The supervisor's own allowlist if it has one, else the graph's; None allows everything."""
        own: Collection[str] | None = getattr(supervisor, "allowlist", None)
        return own if own is not None else self.allowlists.get(name)

    def level(self, subgraph_id: str) -> tuple[Scope, Place]:
        """The resolved level of a subgraph."""
        if subgraph_id not in self._levels:
            self._levels[subgraph_id] = scope.of_subgraph(self.registry, subgraph_id)
        return self._levels[subgraph_id]

    def _model(self, supervisor: str) -> Any:
        return self.llm_provider() if self.llm_provider is not None else self.own_llms.get(supervisor, self.llm)
