"""The generic supervisor: terminal response, handler, rules, model, done; every answer has a reason."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from harness.supervisor import (
    GenericSupervisor,
    HierarchicalDecision,
    NodeOutputs,
    NodeRegistry,
    RoutingDecision,
    SupervisorDecision,
    TriggerCondition,
)
from tests.supervisor.kit import answer, both, fashion, fresh, handlers, kinds, node, once, subgraph, trace


class FakeModel:
    """A model that gives one scripted answer to everything and remembers what it was asked."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = []

    def with_structured_output(self, schema):
        assert schema is SupervisorDecision
        return self

    async def ainvoke(self, prompt, config=None):
        self.asked.append(prompt)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def rules():
    registry = NodeRegistry()
    registry.register(node("low", "main", answer("low"), triggers=[TriggerCondition(priority=1)], is_terminal=True))
    high = TriggerCondition(priority=9, when={"request.action": "go"}, llm_hint="when the user says go")
    registry.register(node("high", "main", answer("high"), triggers=[high], is_terminal=True))
    registry.register(node("silent", "main", answer("silent"), triggers=[], is_terminal=True))
    return registry


def test_the_highest_matching_priority_wins():
    """Rules are taken by falling priority, ties by registration; what does not match is passed over."""
    assert both(rules(), fresh(request={"action": "go"}))["response"]["response_message"] == "high"
    assert both(rules(), fresh())["response"]["response_message"] == "low"


def test_a_finished_node_is_not_run_again_because_nothing_matched():
    """After its node, a supervisor that finds no match is done; the last decision is no candidate."""
    runs = []
    registry = NodeRegistry()
    body = lambda inputs: runs.append(1) or {"response": {"seen": True}}  # noqa: E731 - one expression
    registry.register(node("only", "main", body, when={"response.seen": False}))
    final = both(registry, fresh(), enable_subgraphs=False)
    assert len(runs) == 2  # one for each driver
    assert final["_internal"]["decision"] == "done"


def test_a_node_may_suggest_the_next_but_never_itself():
    """A decision that a node writes is followed when nothing matches; its own name is not."""
    registry = NodeRegistry()
    registry.register(
        node(
            "asker", "main", {"_internal": {"decision": "helper"}}, writes=["_internal"], when={"request.helped": False}
        )
    )
    registry.register(node("helper", "main", answer("helped"), triggers=[], is_terminal=True))
    options = {"supervisor_factory": handlers(registry, {"main": lambda state: None})}
    first = both(registry, fresh(request={"helped": True}), entry="main", **options)
    assert kinds(first) == [("STOP_GLOBAL", "done")]

    selfish = NodeRegistry()
    selfish.register(
        node(
            "me",
            "main",
            {"_internal": {"decision": "me"}, "work": {"n": 1}},
            writes=["_internal", "work"],
            when={"work.n": None},
        )
    )
    assert kinds(both(selfish, fresh())) == [("NODE", "me"), ("STOP_GLOBAL", "done")]

    registry = NodeRegistry()
    outputs = {"_internal": {"decision": "helper"}, "work": {"n": 1}}
    registry.register(node("asker", "main", outputs, writes=["_internal", "work"], when={"work.n": None}))
    registry.register(node("helper", "main", answer("helped"), triggers=[], is_terminal=True))
    final = both(registry, fresh())
    assert kinds(final) == [("NODE", "asker"), ("NODE", "helper")]
    assert trace(final)[1]["reason"] == "fallback: the last node suggested 'helper'"


def sync_handler(state):
    return "silent"


async def async_handler(state):
    return "silent"


def typed_handler(state):
    return HierarchicalDecision(decision_kind="NODE", target="silent", reason="because")


@pytest.mark.parametrize("handler", [sync_handler, async_handler, typed_handler])
def test_a_handler_may_be_sync_async_or_typed(handler):
    """The explicit handler goes before rules, whatever kind of function it is."""
    registry = rules()
    final = both(registry, fresh(), supervisor_factory=handlers(registry, {"main": handler}))
    assert kinds(final) == [("NODE", "silent")]
    assert trace(final)[0]["reason"].startswith("explicit_routing: ")


def test_a_handler_that_names_nothing_real_is_passed_over_and_noted():
    """An unknown target falls through to the rules, and the trace says so."""
    registry = rules()
    final = both(registry, fresh(), supervisor_factory=handlers(registry, {"main": "nonsense"}))
    assert kinds(final) == [("NODE", "low")]
    assert "the handler named 'nonsense'" in trace(final)[0]["reason"]


def test_a_handler_cannot_change_the_state():
    """A handler works on a copy."""
    registry = rules()

    def vandal(state):
        state["request"]["action"] = "go"
        state["_internal"]["visited_subgraphs"]["x"] = 99
        state["_internal"]["decision_trace"].append("forged")

    final = both(registry, fresh(), supervisor_factory=handlers(registry, {"main": vandal}))
    assert kinds(final) == [("NODE", "low")]
    assert final["request"] == {}
    assert final["_internal"]["visited_subgraphs"] == {}


def test_the_model_chooses_and_its_words_are_the_reason():
    """With a model the rules advise and the model decides; nodes, hints and subgraphs are offered to it."""
    registry = fashion()
    for cls in (rules().get_node_class(name) for name in ("low", "high")):
        registry.register(cls)
    model = FakeModel(SupervisorDecision(next_node="high", reasoning="it feels right"))
    final = both(registry, fresh(), llm=model)
    assert kinds(final) == [("NODE", "high")]
    assert trace(final)[0]["reason"] == "llm_decision: it feels right"
    for piece in ("call_subgraph::fashion", "when the user says go", "low (priority 1; always)", "- done"):
        assert piece in model.asked[0]


@pytest.mark.parametrize(
    "reply", ["fashion", {"next_node": "call_subgraph::fashion"}, SimpleNamespace(next_node="fashion")]
)
def test_the_model_may_choose_a_subgraph_in_any_shape_of_answer(reply):
    """A plain string, a mapping or an object will do, with the route or the bare id."""
    registry = fashion()
    final = both(registry, fresh(_internal={"budgets": {"max_reentry": 1}}), llm=FakeModel(reply))
    assert kinds(final)[0] == ("SUBGRAPH", "fashion")


@pytest.mark.parametrize(
    "reply",
    [None, 42, {"other": 1}, SupervisorDecision(next_node="ghost"), RuntimeError("model is down"), {"next_node": 3}],
)
def test_a_model_that_fails_or_babbles_falls_back_to_the_rules_and_then_to_done(reply):
    """Junk, unknown targets and exceptions are noted in the reason; the best rule decides, or done."""
    final = both(rules(), fresh(), llm=FakeModel(reply))
    assert kinds(final) == [("NODE", "low")]
    assert "; the model " in trace(final)[0]["reason"]
    lonely = NodeRegistry()
    lonely.register(node("never", "main", answer("x"), when={"request.no": 1}))
    final = both(lonely, fresh(), llm=FakeModel(reply))
    assert kinds(final) == [("STOP_GLOBAL", "done")]
    assert trace(final)[0]["reason"].startswith("fallback: nothing matched; the model ")


def test_max_iterations_ends_a_loop_and_zero_decides_nothing():
    """The iteration limit is `done` with a reason; 0 is honoured."""
    registry = NodeRegistry()
    registry.register(node("again", "main", answer("x")))
    for limit in (0, 3):
        options = {"supervisor_factory": handlers(registry, {}, max_iterations=limit)}
        final = both(registry, fresh(), **options)
        assert len(trace(final)) == limit + 1
        assert trace(final)[-1]["reason"] == f"max_iterations {limit} reached"
        assert final["_internal"]["main_iteration"] == limit


def test_a_childs_iterations_start_at_zero_at_each_call():
    """max_iterations binds one call of a subgraph, not all calls together."""
    registry = NodeRegistry()
    body = lambda inputs: {"work": {"n": inputs.get_slice("work").get("n", 0) + 1}}  # noqa: E731 - one expression
    registry.register(node("count", "child", body, reads=["work"], writes=["work"]))
    subgraph(registry, "child", supervisors=["child"], reads=["work"], writes=["work"])

    def factory(name, llm):
        if name == "main":
            return handlers(registry, {"main": "call_subgraph::child"})(name, llm)
        return GenericSupervisor(name, registry=registry, max_iterations=3)

    final = both(registry, fresh(work={}), supervisor_factory=factory)
    assert final["work"] == {"n": 6}
    assert "child_iteration" not in final["_internal"]


def test_subclasses_that_override_decide_are_asked():
    """Overriding decide or decide_with_trace takes effect, by subclass or on the object."""
    registry = rules()

    class Stubborn(GenericSupervisor):
        async def decide(self, state, config=None):
            return SupervisorDecision(next_node="silent", reasoning="I always do")

    class Traced(GenericSupervisor):
        async def decide_with_trace(self, state, config=None):
            found = await super().decide_with_trace(state, config)
            assert isinstance(found, RoutingDecision)
            assert found.reason.matched_rules[0].node == "low"
            return found.model_copy(update={"selected_node": "high"})

    for cls, expected in ((Stubborn, "silent"), (Traced, "high")):
        final = both(registry, fresh(), supervisor_factory=lambda name, llm, cls=cls: cls(name, registry=registry))
        assert kinds(final) == [("NODE", expected)]
        assert trace(final)[0]["reason"]


def test_a_custom_supervisor_may_answer_other_slices_and_no_decision():
    """Slices besides _internal are merged; no decision is a FALLBACK that ends the level."""

    class Talker:
        async def run(self, state, config=None):
            return {"response": {"response_message": "hello"}, "_internal": {**state["_internal"], "mood": "good"}}

    final = both(fashion(), fresh(), supervisor_factory=lambda name, llm: Talker())
    assert kinds(final) == [("FALLBACK", None)]
    assert trace(final)[0]["reason"] == "supervisor 'main' gave no decision"
    assert final["response"] == {"response_message": "hello"}
    assert final["_internal"]["mood"] == "good"


@pytest.mark.parametrize(
    ("decision", "kind", "reason"),
    [
        (HierarchicalDecision(decision_kind="SUBGRAPH", target="fashion", reason="go"), ("SUBGRAPH", "fashion"), "go"),
        (HierarchicalDecision(decision_kind="STOP_LOCAL"), ("STOP_GLOBAL", "done"), "supervisor 'main' chose 'done'"),
        (HierarchicalDecision(decision_kind="FALLBACK", reason="lost"), ("FALLBACK", "done"), "lost"),
        (HierarchicalDecision(decision_kind="NODE", reason="none"), ("FALLBACK", None), "none"),
    ],
)
def test_a_custom_supervisor_may_answer_with_a_hierarchical_decision(decision, kind, reason):
    """The typed decision is taken where a route string is, and the state still holds a string."""

    class Typed:
        async def run(self, state, config=None):
            return {"_internal": {"decision": decision if not state["_internal"]["visited_subgraphs"] else "done"}}

    registry = fashion()
    final = both(registry, fresh(), supervisor_factory=lambda name, llm: Typed())
    assert kinds(final)[0] == kind
    assert trace(final)[0]["reason"] == reason
    assert final["_internal"]["decision"] == "done"


def test_a_supervisor_stands_alone():
    """Outside a graph a supervisor still decides over its whole registry."""
    supervisor = GenericSupervisor("main", registry=rules())
    updates = asyncio.run(supervisor(fresh(request={"action": "go"})))
    assert updates["_internal"]["decision"] == "high"
    assert updates["_internal"]["main_iteration"] == 1
    short = asyncio.run(supervisor.decide(fresh()))
    assert (short.next_node, short.reasoning) == ("low", "rule_match: low matched (always, priority 1)")


def test_the_context_builder_chooses_what_the_model_sees_and_long_values_are_cut():
    """Only the chosen slices go into the prompt, with the summary, and no field beyond its limit."""
    registry = rules()
    model = FakeModel("low")

    def factory(name, llm):
        return GenericSupervisor(
            name,
            llm=model,
            registry=registry,
            max_field_length=20,
            context_builder=lambda state, candidates: {"slices": {"request"}, "summary": {"candidates": candidates}},
        )

    state = fresh(request={"text": "x" * 500, "image": "data:image/png;base64," + "A" * 400}, secret={"k": "hidden"})
    both(registry, state, supervisor_factory=factory)
    assert '{"candidates": ["low"]}' in model.asked[0]
    assert "hidden" not in model.asked[0]
    assert "x" * 21 not in model.asked[0]
    assert "image/png" in model.asked[0]
    assert "AAAA" not in model.asked[0]


def test_what_the_allowlist_forbids_is_not_offered_to_the_model():
    """A model cannot end the session by choosing what it should never have seen; if it does, it is a violation."""
    registry = rules()
    model = FakeModel("high")
    final = both(registry, fresh(request={"action": "go"}), llm=model, supervisor_allowlists={"main": {"low"}})
    assert "- low: low" in model.asked[0]
    assert "high" not in model.asked[0]
    assert trace(final)[-1]["termination_reason"] == "allowlist_violation"


def test_a_model_is_provided_anew_for_every_decision():
    """llm_provider is asked for each supervisor step, and for nodes that require a model."""
    made = []

    def provider():
        made.append(FakeModel("done"))
        return made[-1]

    registry = NodeRegistry()
    registry.register(node("n", "main", NodeOutputs()))
    both(registry, fresh(), llm_provider=provider)
    assert len(made) == 2


def test_a_parent_that_calls_once_then_stops_leaves_the_answer():
    """The commonest use: call, read the answer, stop."""
    registry = fashion()
    options = {"supervisor_factory": handlers(registry, {"main": once("call_subgraph::fashion")})}
    final = both(registry, fresh(), **options)
    assert final["response"] == {"response_type": "fashion_trend", "response_message": "clean lines"}
