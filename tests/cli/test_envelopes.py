"""The machine surface: one envelope for each call, stable fields, fixed exit codes."""

from __future__ import annotations

import json

import pytest
from support.workbench import Workbench, shell, write

RUN_FIELDS = {"run_id", "status", "base", "head", "integration_ref", "target", "exit_code", "steps"}
STEP_FIELDS = {
    *("idx", "id", "title", "sub_agent_id", "state", "final_status", "close_reason", "commit", "kept_ref"),
    *("report", "changed_paths", "conflicts"),
}


def test_every_command_answers_with_an_envelope(bench: Workbench) -> None:
    """`schema`, `ok` and `data` on stdout, nothing else there, for every command that has --json."""
    plan = str(bench.plan({"id": "first", **write("x.txt", "x\n")}, shell("exit 1", owns=["y"], needs=["first"])))
    ran = bench.call("run", plan, "--json")
    assert (ran.code, ran.envelope["ok"], ran.envelope["schema"]) == (1, False, 1)
    assert set(ran.data) >= RUN_FIELDS
    assert all(set(step) >= STEP_FIELDS for step in ran.steps)
    assert (ran.steps[0]["id"], ran.steps[0]["state"]) == ("first", "closed")
    assert ran.envelope["error"]["code"] == "run_failed"
    status = bench.call("status", ran.data["run_id"], "--json")
    assert {name: status.data[name] for name in RUN_FIELDS} == {name: ran.data[name] for name in RUN_FIELDS}
    expected = {
        ("list",): "runs",
        ("validate", plan): "critical_path",
        ("agents",): "agents",
        ("doctor",): "checks",
        ("audit",): "intact",
        ("config", "show"): "settings",
        ("show", "latest"): "plan",
        ("show", "latest", "first"): "contract",
        ("report", "latest"): "markdown",
        ("report", "latest", "--step", "first"): "report",
        ("restore", "latest", "first"): "restored",
        ("clean", "--dry-run"): "removed",
        ("version",): "version",
        ("init",): "created",
        ("run", plan, "--dry-run"): "waves",
        ("land", "latest", "--partial"): "target",
    }
    for args, field in expected.items():
        answer = bench.call(*args, "--json")
        assert (answer.code, answer.envelope["ok"], answer.envelope["schema"]) == (0, True, 1), (args, answer)
        assert field in answer.data, args
        assert answer.out.count("\n") == 1, args
    assert bench.call("validate", plan, "--json").data == {
        "steps": [
            {"idx": 0, "id": "first", "title": "write x.txt", "needs": [], "implied_needs": []},
            {"idx": 1, "id": None, "title": "exit 1", "needs": [0], "implied_needs": []},
        ],
        "waves": [[0], [1]],
        "critical_path": [0, 1],
        "errors": [],
    }


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (("status", "nope", "--json"), 2, "not_found"),
        (("show", "latest", "--json"), 2, "not_found"),
        (("report", "latest", "--json"), 2, "not_found"),
        (("land", "--json"), 2, "not_found"),
        (("restore", "latest", "--json"), 2, "not_found"),
        (("resume", "--json"), 2, "not_found"),
        (("cancel", "--json"), 2, "not_found"),
        (("run", "no-such-plan.yaml", "--json"), 2, "plan_invalid"),
        (("validate", "no-such-plan.yaml", "--json"), 2, "plan_invalid"),
        (("run", "--json"), 2, "usage"),
        (("run", "plan.yaml", "--no-such-option", "--json"), 2, "usage"),
        (("run", "plan.yaml", "-j", "0", "--json"), 2, "usage"),
        (("run", "plan.yaml", "-j", "many", "--json"), 2, "usage"),
        (("run", "plan.yaml", "--sandbox", "firm", "--json"), 2, "usage"),
        (("stauts", "--json"), 2, "usage"),
        (("list", "-C", "/nowhere/at/all", "--json"), 2, "usage"),
    ],
)
def test_every_error_is_an_envelope_with_a_code_and_a_hint(
    bench: Workbench, args: tuple[str, ...], code: int, error: str
) -> None:
    """Before any run was made: exit 2, `ok: false`, a stable code, a message, a hint; nothing is created."""
    bench.commit({"plan.yaml": "version: 1\nsteps:\n  - {title: t, command: ['true']}\n"})
    answer = bench.call(*args)
    assert (answer.code, answer.envelope["ok"], answer.envelope["error"]["code"]) == (code, False, error), answer
    assert answer.envelope["error"]["message"]
    assert answer.envelope["error"]["hint"]
    assert not (bench.files / ".orchestrix").exists()


def test_an_unknown_command_gets_a_suggestion(bench: Workbench) -> None:
    """One line on stderr, exit 2, nothing on stdout."""
    for word, meant in (("stauts", "status"), ("vaildate", "validate"), ("--versoin", "--version")):
        answer = bench.call(word)
        assert (answer.code, answer.out) == (2, "")
        assert meant in answer.err, answer.err
        assert answer.err.count("\n") == 1


def test_events_have_the_fixed_fields_in_order_of_seq(bench: Workbench) -> None:
    """`run --jsonl` and `events --jsonl` print the same envelopes; `--after` goes on from a number."""
    plan = str(bench.plan(write("x.txt", "x\n")))
    live = bench.call("run", plan, "--jsonl")
    assert live.code == 0
    lines = [json.loads(line) for line in live.out.splitlines()]
    stored = bench.events()
    assert lines == stored
    assert all({"type", "seq", "ts", "summary", "payload"} <= set(event) for event in stored)
    assert [event["seq"] for event in stored] == list(range(1, len(stored) + 1))
    later = [json.loads(line) for line in bench.call("events", "latest", "--jsonl", "--after", "3").out.splitlines()]
    assert later == stored[3:]
    assert all(event["summary"] and "\n" not in event["summary"] for event in stored)


def test_a_broken_settings_file_is_named_with_its_line(bench: Workbench) -> None:
    """Exit 3 for every command that reads settings; the hint helps."""
    (bench.files / ".orchestrix").mkdir()
    (bench.files / ".orchestrix/config.toml").write_text('jobs = 2\nsandbxo = "none"\n')
    answer = bench.call("list", "--json")
    assert (answer.code, answer.envelope["error"]["code"]) == (3, "config_invalid")
    assert "config.toml:2" in answer.envelope["error"]["message"]
    assert "sandbox" in answer.envelope["error"]["hint"]


def test_runs_are_named_by_prefix_and_by_latest(bench: Workbench) -> None:
    """An ambiguous prefix is refused; a name of one's own works and is not taken twice."""
    for name in ("alpha-1", "alpha-2"):
        assert bench.run(write("x.txt", "x\n"), flags=("--run-id", name)).data["run_id"] == name
    assert bench.call("status", "alpha-1", "--json").data["run_id"] == "alpha-1"
    assert bench.call("status", "latest", "--json").data["run_id"] == "alpha-2"
    assert bench.call("status", "alpha", "--json").code == 2
    assert bench.run(write("x.txt", "x\n"), flags=("--run-id", "alpha-1")).code == 2
    for odd in ("../escape", "-x", "a b", "a/b", ".lock", "x.lock", "x" * 300, ""):
        assert bench.run(write("x.txt", "x\n"), flags=(f"--run-id={odd}",)).code == 2, odd
    assert [run["run_id"] for run in bench.call("list", "--json").data["runs"]] == ["alpha-2", "alpha-1"]
