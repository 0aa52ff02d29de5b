"""Attempts: how they end, how often they are made, and what the next one is told."""

from __future__ import annotations

import pytest
from support.workbench import Workbench, shell, write


def test_exit_zero_without_a_change_is_its_own_verdict(bench: Workbench) -> None:
    """`no_changes` fails the step unless it says `allow_empty`; writing what is there already is no change."""
    done = bench.run(
        shell("true"), shell("printf 'VALUE = 1\\n' > src/lib.py; echo x > ignored.log; rm ignored.log", needs=[])
    )
    assert (done.code, done.reasons) == (1, ["no_changes", "dependency_failed"])
    assert done.steps[0]["kept_ref"] is None
    empty = bench.run(shell("true", allow_empty=True), write("x.txt", "x\n"))
    assert (empty.code, empty.reasons) == (0, ["merged", "merged"])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"timeout": "400ms"}, "timeout"), ({"inactivity_timeout": "400ms"}, "inactivity_timeout")],
)
def test_an_attempt_that_hangs_is_ended_and_its_work_kept(
    bench: Workbench, fields: dict[str, str], reason: str
) -> None:
    """Exit 124, with what the step had written until then."""
    done = bench.run(shell("echo begun > x.txt; sleep 60", **fields))
    assert (done.code, done.reasons) == (124, [reason])
    assert bench.tree(done.steps[0]["kept_ref"])["x.txt"] == "begun"


def test_the_time_limit_binds_the_whole_attempt_not_each_of_its_programs(bench: Workbench) -> None:
    """Several programs that are each within the limit are together beyond it: exit 124."""
    actions = [{"run": "sleep 2"}, {"run": "sleep 2"}, {"run": "sleep 2"}, {"write_file": {"path": "x", "content": ""}}]
    done = bench.run({"title": "slow in sum", "timeout": "2500ms", "actions": actions})
    assert (done.code, done.reasons) == (124, ["timeout"]), done.out


def test_output_keeps_an_attempt_alive(bench: Workbench) -> None:
    """The inactivity limit counts from the last output, not from the start."""
    done = bench.run(shell("for n in 1 2 3 4 5 6; do echo $n; sleep 0.2; done; echo 1 > x", inactivity_timeout="900ms"))
    assert (done.code, done.reasons) == (0, ["merged"])


def test_a_missing_program_or_agent_is_an_environment_problem(bench: Workbench) -> None:
    """A program is missed when its step runs (no retry helps); an unknown agent is refused before anything starts."""
    missing = bench.run({"title": "no such program", "command": ["no-such-program-anywhere"], "retries": 3})
    assert (missing.code, missing.reasons) == (3, ["agent_missing"])
    assert missing.steps[0]["attempts"] == 1
    refs = bench.git("for-each-ref")
    unknown = bench.run({"title": "no such agent", "agent": "clade"})
    assert unknown.code == 3
    assert "clade" in unknown.envelope["error"]["message"]
    assert "actions" in unknown.envelope["error"]["hint"]
    assert bench.git("for-each-ref") == refs


def test_a_failing_setup_fails_the_step_before_its_agent_runs(bench: Workbench) -> None:
    """The report says which command and what it printed; nothing of the agent was executed."""
    done = bench.run(shell("echo ran > ran.txt", setup=["echo first", "echo broken >&2; exit 7"]))
    assert (done.code, done.reasons) == (1, ["setup_failed"])
    assert "exit 7" in done.steps[0]["message"]
    assert "broken" in done.steps[0]["message"]
    started = [event["payload"]["purpose"] for event in bench.events() if event["type"] == "attempt.process_started"]
    assert started == ["setup", "setup"]
    good = bench.run(shell("test -e prepared.tmp && echo ran > ran.txt", setup="touch prepared.tmp", owns=["*"]))
    assert good.code == 0


def test_a_retry_starts_clean_and_knows_why_the_last_one_failed(bench: Workbench, monkeypatch) -> None:
    """Every attempt's work is kept; the prompt of the next one carries the failure; the third one is merged."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "10ms")
    script = (
        'cat > prompt.txt; ls >> seen.txt; echo "attempt $ORCHESTRIX_ATTEMPT" > work.txt;'
        ' test "$ORCHESTRIX_ATTEMPT" = 3 || { echo "reason $ORCHESTRIX_ATTEMPT"; exit 9; }'
    )
    done = bench.run(shell(script, retries=2))
    assert (done.code, done.reasons, done.steps[0]["attempts"]) == (0, ["merged"], 3)
    tree = bench.tree(done.data["head"])
    assert "reason 2" in tree["prompt.txt"]
    assert "reason 1" not in tree["prompt.txt"]
    assert "work.txt" not in tree["seen.txt"]
    kept = [event["payload"]["ref"] for event in bench.events() if event["type"] == "work.kept"]
    assert [bench.tree(ref)["work.txt"] for ref in kept] == ["attempt 1", "attempt 2"]
    finished = [event["payload"] for event in bench.events() if event["type"] == "attempt.finished"]
    assert [(fact["attempt"], fact["ok"], fact["exit_code"]) for fact in finished] == [
        (1, False, 9),
        (2, False, 9),
        (3, True, 0),
    ]


def test_retries_are_counted_and_then_exhausted(bench: Workbench, monkeypatch) -> None:
    """One retry is two attempts; the last failure is the step's."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "10ms")
    done = bench.run(shell("exit 3", retries=1))
    assert (done.code, done.reasons, done.steps[0]["attempts"]) == (1, ["agent_failed"], 2)


def test_a_rate_limit_pauses_without_consuming_a_retry(bench: Workbench, monkeypatch) -> None:
    """Without any retries the step is tried again after the pause that the agent asked for."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "10ms")
    script = (
        'case "$ORCHESTRIX_ATTEMPT" in 1) echo "ORCHESTRIX_RATE_LIMITED retry_after=0.3"; exit 1;; 2) exit 75;; esac;'
        " echo done > x.txt"
    )
    done = bench.run(shell(script, retries=0))
    assert (done.code, done.reasons, done.steps[0]["attempts"]) == (0, ["merged"], 3)
    finished = [event["payload"] for event in bench.events() if event["type"] == "attempt.finished"]
    assert [(fact["reason"], fact["retry_in_ms"]) for fact in finished] == [
        ("rate_limited", 300),
        ("rate_limited", None),
        (None, None),
    ]


def test_tools_outside_the_contract_are_denied_and_told(bench: Workbench) -> None:
    """Exit 5; an empty list allows nothing; a program is a `run`."""
    only_write = bench.run(write("x.txt", "x\n", allowed_tools=["read_file"]))
    assert (only_write.code, only_write.reasons) == (5, ["tool_denied"])
    denied = [event["payload"] for event in bench.events() if event["type"] == "tool.denied"]
    assert [(fact["tool"], fact["arguments"]["path"]) for fact in denied] == [("write_file", "x.txt")]
    assert bench.run(write("x.txt", "x\n", allowed_tools=[])).reasons == ["tool_denied"]
    program = bench.run(shell("echo 1 > x.txt", allowed_tools=["write_file"]))
    assert (program.code, program.reasons) == (5, ["contract_refused"])
    assert bench.run(shell("echo 1 > x.txt", allowed_tools=["shell"])).code == 0


@pytest.mark.parametrize(
    "path", ["../escape.txt", "/tmp/escape.txt", ".git/hooks/pre-commit", "out/escape.txt", ".GIT"]
)
def test_an_action_never_leaves_its_workspace(bench: Workbench, path: str) -> None:
    """Neither by dots, nor absolutely, nor through a link that is in the repository, nor into .git."""
    (bench.files / "out").symlink_to("../..")
    bench.git("add", "out")
    bench.git("commit", "-q", "-m", "A link that leads out")
    done = bench.run(write(path, "escaped\n", owns=["**"]))
    assert done.code in (1, 5)
    assert done.data["head"] == done.data["base"]
    assert not list(bench.root.rglob("escape.txt"))
