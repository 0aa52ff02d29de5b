"""A supervisor calls a plan, and the plan becomes commits."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support import checker
from support.workbench import Workbench, write

from harness.runs.runner import EngineRunner
from harness.supervisor import GenericSupervisor, NodeRegistry, run_registry
from harness.supervisor.run_plan import register_plan


def _made(tmp_path: Path) -> Workbench:
    bench = Workbench(tmp_path)
    bench.commit({"a.txt": "a\n"})
    return bench


def test_a_supervisor_calls_a_plan_and_gets_the_run_in_its_response(tmp_path: Path) -> None:
    """`call_subgraph::release` runs real worktrees and merges; the result stands in response_data."""
    bench = _made(tmp_path)
    registry = NodeRegistry()
    register_plan(registry, "release", {"version": 1, "steps": [write("x.txt", "x\n")]})

    def factory(name: str, llm: object) -> GenericSupervisor:
        def route(state: dict) -> str | None:
            return None if state.get("response") else "call_subgraph::release"

        handler = route if name == "domain" else None
        return GenericSupervisor(supervisor_name=name, llm=llm, registry=registry, explicit_routing_handler=handler)

    state = asyncio.run(
        run_registry(
            registry,
            {"request": {}, "response": {}},
            supervisors=["domain"],
            entrypoint="domain",
            supervisor_factory=factory,
            enable_subgraphs=True,
            plan_runner=EngineRunner(bench.files),
        )
    )
    data = state["response"]["response_data"]
    assert data["status"] == "succeeded"
    assert bench.tree(data["head"])["x.txt"] == "x"
    assert checker.check(bench.files) == []


def test_calling_it_again_with_the_same_run_id_runs_nothing_twice(tmp_path: Path) -> None:
    """A graph that is replayed after an interrupt gets the run that exists."""
    bench = _made(tmp_path)
    runner = EngineRunner(bench.files)
    plan = {"version": 1, "steps": [write("x.txt", "x\n")]}
    first = asyncio.run(runner(plan, run_id="fixed"))
    second = asyncio.run(runner(plan, run_id="fixed"))
    assert first["head"] == second["head"]
    assert bench.types("0", "fixed").count("agent.subagent_attempt") == 1
