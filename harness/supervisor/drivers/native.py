"""The native driver: a plain async loop, microseconds a step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from harness.errors import UsageError
from harness.supervisor import kernel, scope, steps
from harness.supervisor.assembly import Allowlists, Assembly, SupervisorFactory
from harness.supervisor.contracts import NodeContract
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.scope import Place, Scope
from harness.supervisor.slices import State, internal_of
from harness.supervisor.steps import Level

UNBUDGETED_STEPS: Final = 10_000
"""Where no budget counts the steps, a level that has not ended after so many is a loop."""


async def run_registry(
    registry: NodeRegistry,
    state: State,
    *,
    entrypoint: str,
    llm: Any = None,
    llm_provider: Callable[[], Any] | None = None,
    dependency_provider: Callable[[NodeContract], Mapping[str, Any]] | None = None,
    supervisor_factory: SupervisorFactory | None = None,
    supervisors: Sequence[str] | None = None,
    enable_subgraphs: bool = False,
    supervisor_allowlists: Allowlists | None = None,
    node_allowlist: Collection[str] | None = None,
    config: Any = None,
    **services: Any,
) -> State:
    """Run one turn and return the final state; `state` itself is not changed.

    `entrypoint` names a supervisor (its `_supervisor` suffix is optional), a node, or `call_subgraph::<id>`.

    Raises:
        RegistryInvalid: the entry point is no part of the graph.
        UsageError: a flat graph without budgets did not end within `UNBUDGETED_STEPS`.
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
    here = level.place(entrypoint)
    if here is None:
        raise RegistryInvalid(f"entry point {entrypoint!r} is no part of the graph", hint="name a supervisor or node")
    for subgraph_id in level.subgraphs:
        assembly.level(subgraph_id)
    return await walk(assembly, level, here, state, config)


async def walk(assembly: Assembly, level_scope: Scope, start: Place, state: State, config: Any = None) -> State:
    """Run one turn of a graph that is put together already, for whoever runs many turns of the same."""

    async def run_child(subgraph_id: str, child: State, child_config: Any) -> State:
        return await walk(assembly, *assembly.level(subgraph_id), child, child_config)

    level = Level(assembly, level_scope, run_child)
    here: Place | None = start
    taken = 0
    while here is not None:
        state = await steps.take(level, here, state, config)
        internal = internal_of(state)
        here = kernel.next_place(internal, here, level_scope.contracts)
        taken += 1
        if taken >= UNBUDGETED_STEPS and here is not None and "budgets" not in internal:
            raise UsageError(
                f"no end after {taken} steps, now at {here.name!r}", hint="give _internal.budgets, or let a node finish"
            )
    return state
