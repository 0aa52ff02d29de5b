"""The harness from a supervisor: `call_subgraph::<plan>` runs a plan and answers with its result."""

from __future__ import annotations

from harness.supervisor import NodeRegistry
from harness.supervisor.run_plan import RunPlanNode, register_plan
from tests.supervisor.kit import both, fresh, handlers, kinds, node, once


class FakeRunner:
    """Runs nothing and answers as `orchestrix run --json` would."""

    def __init__(self, status="succeeded"):
        self.status = status
        self.calls = []

    async def __call__(self, plan, **options):
        self.calls.append((plan, options))
        if self.status == "broken":
            raise RuntimeError("the repository is gone")
        return {"run_id": "r1", "status": self.status, "exit_code": 0, "head": "abc", "steps": [{"idx": 0}]}


def planned(plan="plan.yaml", **options):
    registry = NodeRegistry()
    register_plan(registry, "release", plan, description="Builds the release", **options)
    return registry


def test_a_plan_is_a_subgraph_and_its_result_is_the_response():
    """The supervisor calls the plan; the run's data is in the response slice."""
    registry, runner = planned(land=True), FakeRunner()
    options = {"supervisor_factory": handlers(registry, {"main": once("call_subgraph::release")})}
    final = both(registry, fresh(request={"options": {"jobs": 2}}), plan_runner=runner, **options)
    assert final["response"] == {
        "response_type": "plan_run",
        "response_message": "run r1: succeeded, 1 steps",
        "response_data": {"run_id": "r1", "status": "succeeded", "exit_code": 0, "head": "abc", "steps": [{"idx": 0}]},
    }
    assert runner.calls == [("plan.yaml", {"land": True, "jobs": 2})] * 2  # once for each driver
    assert kinds(final) == [("SUBGRAPH", "release"), ("STOP_GLOBAL", "done")]


def test_the_parent_routes_on_the_status_of_the_run():
    """A run that failed is an answer, not an exception: triggers can read its status."""
    registry = planned()
    registry.register(
        node(
            "report",
            "main",
            {"response": {"told": True}},
            when={"response.response_data.status": "failed"},
            is_terminal=True,
        )
    )
    table = {"main": once("call_subgraph::release", then="")}
    final = both(registry, fresh(), plan_runner=FakeRunner("failed"), supervisor_factory=handlers(registry, table))
    assert kinds(final)[-1] == ("NODE", "report")
    assert final["response"]["told"]


def test_a_plan_may_come_with_the_request():
    """Without a fixed plan, request.plan is run, as a path or as data; no plan at all is a child failure."""
    registry, runner = planned(None), FakeRunner()
    table = {"main": lambda s: "done" if s["_internal"]["visited_subgraphs"] else "call_subgraph::release"}
    options = {"supervisor_factory": handlers(registry, table), "plan_runner": runner}
    both(registry, fresh(request={"plan": {"version": 1, "steps": []}}), **options)
    assert runner.calls[0] == ({"version": 1, "steps": []}, {})
    final = both(registry, fresh(), **options)
    assert final["_internal"]["child_failure"]["message"] == "there is no plan to run"


def test_a_runner_that_breaks_or_is_missing_is_a_child_failure():
    """The parent is told and the session goes on."""
    registry = planned()
    table = {"main": lambda s: "done" if s["_internal"]["visited_subgraphs"] else "call_subgraph::release"}
    factory = handlers(registry, table)
    final = both(registry, fresh(), supervisor_factory=factory, plan_runner=FakeRunner("broken"))
    assert final["_internal"]["child_failure"]["message"] == "the repository is gone"
    final = both(registry, fresh(), supervisor_factory=factory)
    assert final["_internal"]["child_failure"]["message"] == "node 'run_plan_release' has no plan_runner"


def test_the_node_can_be_registered_as_it_is():
    """RunPlanNode is an ordinary node: in a flat graph a plan in the request triggers it."""
    registry = NodeRegistry()
    registry.register(RunPlanNode)
    state = fresh(request={"plan": "p.yaml"})
    final = both(registry, state, "plans", plan_runner=FakeRunner(), enable_subgraphs=False)
    assert final["response"]["response_data"]["run_id"] == "r1"
