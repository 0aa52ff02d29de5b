"""What only LangGraph can do: streams, checkpoints, interrupts inside a child, state classes, custom entries."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, StateGraph
from langgraph.types import Command, interrupt

from harness.supervisor import GenericSupervisor, NodeRegistry, RegistryInvalid, build_graph_from_registry, run_registry
from tests.supervisor.kit import answer, compiled, fashion, fresh, handlers, kinds, node, once, subgraph, trace


def strict() -> JsonPlusSerializer:
    """Plain data only: no pickles, no classes by name."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


def asking(levels: int) -> tuple[NodeRegistry, dict[str, Any]]:
    """A node that asks a person, `levels` calls below the top, after one that has already written."""
    registry = NodeRegistry()
    team = f"l{levels}"

    def ask(inputs):
        return answer(f"you said {interrupt({'question': 'which colour?'})}")

    registry.register(node("draft", team, {"work": {"drafted": 1}}, writes=["work"], when={"work.drafted": None}))
    registry.register(node("ask", team, ask, when={"work.drafted": 1}, is_terminal=True))
    for level in range(1, levels + 1):
        subgraph(
            registry,
            f"l{level}",
            supervisors=[f"l{level}"],
            nodes=None if level == levels else [],
            writes=["response", "work"],
        )
    table = {"main": once("call_subgraph::l1"), "l1": once("call_subgraph::l2") if levels == 2 else None}
    return registry, {
        "supervisors": ["main"],
        "enable_subgraphs": True,
        "supervisor_factory": handlers(registry, table),
    }


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("saver", ["memory", "sqlite"])
def test_an_interrupt_inside_a_child_is_resumed_there(levels, saver, tmp_path):
    """A child asks, the graph pauses with the question, and the answer continues in the child: nothing is run twice."""
    registry, options = asking(levels)
    thread = {"configurable": {"thread_id": "t"}}

    async def talk(checkpointer, again):
        paused = await compiled(registry, checkpointer=checkpointer, **options).ainvoke(fresh(), thread)
        # a new graph object on the same storage, as after a restart of the process
        resumed = compiled(registry, checkpointer=again, **options)
        return paused, await resumed.ainvoke(Command(resume="green"), thread)

    async def run():
        if saver == "memory":
            memory = InMemorySaver(serde=strict())
            return await talk(memory, memory)
        path = str(tmp_path / "threads.db")
        async with AsyncSqliteSaver.from_conn_string(path) as one, AsyncSqliteSaver.from_conn_string(path) as two:
            one.serde = two.serde = strict()
            return await talk(one, two)

    paused, final = asyncio.run(run())
    assert [pause.value for pause in paused["__interrupt__"]] == [{"question": "which colour?"}]
    assert final["response"] == {"response_type": "answer", "response_message": "you said green"}
    assert final["work"] == {"drafted": 1}
    assert [target for kind, target in kinds(final) if kind == "NODE"] == ["draft", "ask"]
    assert [item["step"] for item in trace(final)] == sorted({item["step"] for item in trace(final)})
    assert final["_internal"]["call_stack"] == []
    assert "child_failure" not in final["_internal"]


def test_an_interrupt_in_a_handler_of_a_child_is_no_failure():
    """Control flow of LangGraph passes through supervisors and models untouched."""
    registry = fashion()
    table = {"main": once("call_subgraph::fashion"), "fashion": lambda state: interrupt("sure?") and None}
    app = compiled(
        registry,
        supervisors=["main"],
        enable_subgraphs=True,
        supervisor_factory=handlers(registry, table),
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "t"}}

    async def run():
        paused = await app.ainvoke(fresh(), thread)
        return paused, await app.ainvoke(Command(resume="yes"), thread)

    paused, final = asyncio.run(run())
    assert paused["__interrupt__"][0].value == "sure?"
    assert final["response"]["response_message"] == "clean lines"


def test_an_interrupt_in_a_model_is_no_failure():
    """A model call that pauses the graph is not taken for a broken model."""

    class Pausing:
        def with_structured_output(self, schema):
            return self

        async def ainvoke(self, prompt, config=None):
            return interrupt("which node?")

    registry = NodeRegistry()
    registry.register(node("a", "main", answer("a"), is_terminal=True))
    registry.register(node("b", "main", answer("b"), is_terminal=True))
    app = compiled(registry, supervisors=["main"], llm=Pausing(), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}

    async def run():
        await app.ainvoke(fresh(), thread)
        return await app.ainvoke(Command(resume="b"), thread)

    assert asyncio.run(run())["response"]["response_message"] == "b"


def test_new_input_instead_of_an_answer_is_a_new_turn():
    """An interrupt that nobody resumes does not leak its counters into the next turn."""
    registry, options = asking(1)
    app = compiled(registry, checkpointer=InMemorySaver(serde=strict()), **options)
    thread = {"configurable": {"thread_id": "t"}}

    async def run():
        first = await app.ainvoke(fresh(), thread)
        return first, await app.ainvoke(fresh(), thread)

    first, second = asyncio.run(run())
    assert second["_internal"] == first["_internal"]
    assert second["__interrupt__"][0].value == first["__interrupt__"][0].value


def test_astream_shows_every_step_and_the_children():
    """Updates come by node name, those of a child under the name of its call."""
    registry = fashion()
    options = {"supervisor_factory": handlers(registry, {"main": once("call_subgraph::fashion")})}
    app = compiled(registry, supervisors=["main"], enable_subgraphs=True, **options)

    async def collect(**kwargs):
        return [part async for part in app.astream(fresh(), **kwargs)]

    updates = asyncio.run(collect(stream_mode="updates"))
    assert [next(iter(part)) for part in updates] == ["main_supervisor", "call_subgraph__fashion", "main_supervisor"]
    deep = asyncio.run(collect(stream_mode="updates", subgraphs=True))
    assert [next(iter(part)) for where, part in deep if where] == ["fashion_supervisor", "trend_node"]
    values = asyncio.run(collect(stream_mode="values"))
    assert values[-1]["response"]["response_message"] == "clean lines"
    # earlier values are snapshots: a later step does not reach back into them
    assert [len(part["_internal"].get("decision_trace", [])) for part in values] == [0, 1, 2, 3]


class Sliced(TypedDict, total=False):
    request: dict[str, Any]
    response: Annotated[dict[str, Any], lambda old, new: {**(old or {}), **(new or {})}]
    work: dict[str, Any]
    _internal: dict[str, Any]


def test_a_state_class_gives_the_same_result_as_one_dict():
    """A TypedDict, reducers included, ends with the state of the native loop."""
    registry = fashion()
    options = {
        "supervisors": ["main"],
        "enable_subgraphs": True,
        "supervisor_factory": handlers(registry, {"main": "call_subgraph::fashion"}),
    }
    typed = asyncio.run(compiled(registry, state_class=Sliced, **options).ainvoke(fresh()))
    assert typed == asyncio.run(run_registry(registry, fresh(), entrypoint="main", **options))


def test_a_state_class_without_room_is_refused():
    """Slices that would silently vanish are named when the graph is built."""

    class Narrow(TypedDict):
        request: dict[str, Any]

    with pytest.raises(RegistryInvalid, match="_internal"):
        build_graph_from_registry(fashion(), supervisors=["fashion"], state_class=Narrow)


def test_a_bare_dict_subclass_counts_as_one_dict():
    """A state class without fields works as the plain dict does."""

    class Bag(dict):
        pass

    registry = fashion()
    app = compiled(registry, "fashion_supervisor", supervisors=["fashion"], state_class=Bag)
    assert asyncio.run(app.ainvoke(fresh()))["response"]["response_message"] == "clean lines"


def test_the_graph_is_uncompiled_and_named_as_the_seed_names_it():
    """Supervisors are `<name>_supervisor`, nodes keep their names, calls are `call_subgraph__<id>`."""
    graph = build_graph_from_registry(fashion(), supervisors=["domain"], enable_subgraphs=True)
    assert isinstance(graph, StateGraph)
    assert set(graph.nodes) == {"domain_supervisor", "call_subgraph__fashion"}
    flat = build_graph_from_registry(fashion())
    assert set(flat.nodes) == {"fashion_supervisor", "trend_node"}


def test_an_entry_may_be_given_by_name_or_as_a_router_of_its_own():
    """entrypoint takes a node name, or the origin's triple of name, node and route."""
    registry = fashion()
    named = build_graph_from_registry(registry, entrypoint="fashion_supervisor").compile()
    assert asyncio.run(named.ainvoke(fresh()))["response"]["response_message"] == "clean lines"

    async def intake(state):
        return {**state, "request": {"seen": True}}

    routed = build_graph_from_registry(
        registry,
        entrypoint=("intake", intake, lambda s: "fashion_supervisor" if s["request"]["seen"] else END),
    ).compile()
    final = asyncio.run(routed.ainvoke(fresh()))
    assert final["request"] == {"seen": True}
    assert final["response"]["response_message"] == "clean lines"


def test_names_that_would_collide_in_the_graph_are_refused():
    """Two places with one node name, or a name of a generated node, cannot be built."""
    registry = fashion()
    registry.register(node("fashion_supervisor", "fashion"))
    with pytest.raises(RegistryInvalid, match="would both be"):
        build_graph_from_registry(registry)
    registry = fashion()
    registry.register(node("call_subgraph__x", "fashion"))
    with pytest.raises(RegistryInvalid, match="reserved prefix"):
        build_graph_from_registry(registry, enable_subgraphs=True)


def test_an_incomplete_subgraph_is_refused_by_both_drivers_before_anything_runs():
    """A subgraph that lists a node nobody registered is an error of the builder, not of some later step."""
    registry = NodeRegistry()
    subgraph(registry, "ghost", supervisors=["ghost"], nodes=["missing"])
    with pytest.raises(RegistryInvalid, match="'missing'"):
        build_graph_from_registry(registry, supervisors=["main"], enable_subgraphs=True)
    with pytest.raises(RegistryInvalid, match="'missing'"):
        asyncio.run(run_registry(registry, fresh(), entrypoint="main", supervisors=["main"], enable_subgraphs=True))
    with pytest.raises(RegistryInvalid, match="entry point"):
        asyncio.run(run_registry(registry, fresh(), entrypoint="nobody", supervisors=["main"]))


def test_concurrent_runs_of_one_graph_do_not_meet():
    """Fifty invocations at once, half of them stopped early, end as each would alone."""
    registry = fashion()
    app = compiled(
        registry,
        supervisors=["main"],
        enable_subgraphs=True,
        supervisor_factory=lambda name, llm: GenericSupervisor(
            name,
            registry=registry,
            explicit_routing_handler=once("call_subgraph::fashion") if name == "main" else None,
        ),
    )
    states = [fresh(_internal={"budgets": {"max_steps": 2 + index % 2 * 20}}) for index in range(50)]

    async def run():
        return await asyncio.gather(*(app.ainvoke(state) for state in states))

    found = [final["response"]["response_message"] for final in asyncio.run(run())]
    assert found == ["max_steps_exceeded", "clean lines"] * 25
