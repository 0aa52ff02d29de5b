"""Validation, picture and look-up of a registry, before anything runs."""

from __future__ import annotations

import pytest

from harness.errors import NotFound, UsageError
from harness.supervisor import NodeRegistry, TriggerCondition
from harness.supervisor.diagram import mermaid
from harness.supervisor.locate import registry_at
from harness.supervisor.validation import validate
from tests.supervisor.kit import answer, fashion, node, subgraph

sample_registry = fashion()


def codes(report):
    return [(finding.level, finding.code, finding.subject) for finding in report.findings]


def test_the_guide_registry_is_sound_with_budgets():
    """Nothing is found where nothing is wrong."""
    report = validate(fashion(), supervisors=["domain"], budgets={"max_depth": 2})
    assert report.ok
    assert report.findings == ()
    assert report.as_dict() == {"ok": True, "findings": []}


def test_loops_without_budgets_are_named():
    """A subgraph that may call itself, and a node that always matches, are warnings when no budgets are set."""
    registry = fashion()
    subgraph(registry, "other", supervisors=["fashion"], nodes=["trend_node"], entrypoint="fashion")
    registry.register(node("loop", "main"))
    found = codes(validate(registry, supervisors=["main"]))
    assert ("warning", "cycle_without_budgets", "fashion") in found
    assert ("warning", "cycle_without_budgets", "loop") in found
    closed = {"main": {"fashion", "loop"}, "fashion": {"trend_node"}}
    found = codes(validate(registry, supervisors=["main"], supervisor_allowlists=closed))
    assert ("warning", "cycle_without_budgets", "fashion") not in found
    assert ("warning", "unreachable_subgraph", "other") in found


def test_unknown_names_are_errors():
    """Supervisors, nodes, entries and targets that do not exist cannot work."""
    registry = NodeRegistry()
    registry.register(node("real", "main"))
    subgraph(registry, "broken", supervisors=["ghosts"], nodes=["ghost"], entrypoint="nowhere")
    report = validate(
        registry, supervisors=["main"], supervisor_allowlists={"stranger": {"real"}, "main": {"unreal"}}, budgets={}
    )
    assert not report.ok
    assert [finding for finding in codes(report) if finding[0] == "error"] == [
        ("error", "unknown_node", "broken"),
        ("error", "unknown_supervisor", "broken"),
        ("error", "unknown_entrypoint", "broken"),
        ("error", "unknown_supervisor", "stranger"),
        ("error", "unknown_target", "main"),
    ]
    assert codes(validate(NodeRegistry(), supervisors=["main"])) == [("error", "unknown_supervisor", "main")]


def test_unreachable_nodes_are_warnings():
    """A node outside every level, or off every allowlist, never runs."""
    registry = fashion()
    registry.register(node("island", "nobody"))
    found = codes(validate(registry, supervisors=["main"], budgets={}))
    assert ("warning", "unreachable_node", "island") in found
    found = codes(validate(registry, supervisors=["main"], supervisor_allowlists={"main": set()}, budgets={}))
    assert ("warning", "unreachable_subgraph", "fashion") in found
    assert ("warning", "unreachable_node", "trend_node") in found


def test_slices_that_nobody_writes_or_declares_are_warnings():
    """A read without a writer, a write that stops at the boundary, and a promise that nobody keeps."""
    registry = NodeRegistry()
    waits = [TriggerCondition(when={"profile.ready": True})]
    registry.register(node("reader", "main", triggers=waits, reads=["request", "history"]))
    registry.register(node("writer", "child", writes=["response", "work"]))
    subgraph(registry, "child", supervisors=["child"], writes=["response", "promise"])
    found = codes(validate(registry, supervisors=["main"], budgets={}))
    assert found == [
        ("warning", "never_written", "reader"),
        ("warning", "never_written", "reader"),
        ("warning", "undeclared_write", "child"),
        ("warning", "never_written", "child"),
    ]


def test_services_are_checked_when_they_are_known():
    """A node whose service nobody provides is an error."""
    registry = NodeRegistry()
    registry.register(node("needy", "main", services=["db"]))
    assert codes(validate(registry, services=["mail"], budgets={})) == [("error", "unknown_service", "needy")]
    assert validate(registry, services=["db"], budgets={}).ok


def test_the_top_level_is_guessed_from_the_subgraphs():
    """Without a list, the supervisors that no subgraph contains are the top."""
    registry = fashion()
    registry.register(node("work", "main", answer("x"), is_terminal=True))
    assert validate(registry, budgets={}).findings == ()


def test_the_picture_shows_supervisors_nodes_calls_and_boxes():
    """The whole Mermaid text of a small registry."""
    registry = fashion()
    registry.register(node('say "hi"', "main"))
    assert mermaid(registry, supervisor_allowlists={"fashion": {"trend_node"}}) == (
        "flowchart TD\n"
        "    start((start))\n"
        "    start --> s_main\n"
        '    s_main{{"main"}}\n'
        '    n_say_32__34_hi_34_["say &quot;hi&quot;"]\n'
        "    s_main <--> n_say_32__34_hi_34_\n"
        "    s_main -. call .-> g_fashion\n"
        '    subgraph g_fashion["fashion: fashion"]\n'
        '        s_fashion_fashion{{"fashion"}}\n'
        '        n_fashion_trend_node(["trend_node"])\n'
        "        s_fashion_fashion --> n_fashion_trend_node\n"
        "    end\n"
    )


def made_registry():
    return sample_registry


def test_a_registry_is_found_by_module_and_attribute():
    """An attribute or a function that returns one will do."""
    here = "tests.supervisor.test_validation"
    assert registry_at(f"{here}:sample_registry").get_all_nodes() == ["trend_node"]
    assert registry_at(f"{here}:made_registry").get_all_nodes() == ["trend_node"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("no_colon", UsageError),
        (":x", UsageError),
        ("no_such_module_here:x", NotFound),
        ("tests.supervisor.test_validation:nothing", NotFound),
        ("tests.supervisor.test_validation:__name__", UsageError),
    ],
)
def test_a_registry_that_is_not_there_is_said_so(spec, error):
    """Each mistake has its own error with a hint."""
    with pytest.raises(error) as caught:
        registry_at(spec)
    assert caught.value.hint
