"""`build_graph_from_registry`: the door to the LangGraph driver, which is imported only when somebody walks in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import EnvironmentProblem
from harness.supervisor import scope
from harness.supervisor.assembly import Allowlists, Assembly, SupervisorFactory
from harness.supervisor.contracts import NodeContract
from harness.supervisor.registry import NodeRegistry

if TYPE_CHECKING:
    from harness.supervisor.drivers.langgraph import Entry, GraphWeaver


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
    assembly = Assembly(
        registry=registry,
        llm=llm,
        llm_provider=llm_provider,
        dependency_provider=dependency_provider,
        supervisor_factory=supervisor_factory,
        allowlists=supervisor_allowlists or {},
        services=services,
        hierarchical=enable_subgraphs,
    )
    level = scope.root(registry, supervisors, node_allowlist, hierarchical=enable_subgraphs)
    for subgraph_id in level.subgraphs:
        assembly.level(subgraph_id)
    return _weaver(assembly, state_class).weave(level, entrypoint)


def _weaver(assembly: Assembly, state_class: type[Any] | None) -> GraphWeaver:
    try:
        from harness.supervisor.drivers.langgraph import GraphWeaver  # noqa: PLC0415 - 0.9 s, and an extra
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            f"the LangGraph driver needs {error.name}", hint="pip install 'orchestrix-harness[langgraph]'"
        ) from error
    return GraphWeaver(assembly, state_class)
