"""`orchestrix ci` from the plan to what a CI system keeps of it."""

from __future__ import annotations

import json
import os
import select
import signal
import xml.etree.ElementTree as ET
from pathlib import Path

from support.workbench import Workbench, shell, write

from harness.model.events import Envelope, verify
from tests.ci.stories import obeyed, outputs_in

_TOKENS = ("ghs_token", "runtime-token", "id-token")


def _summary(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())


def _log(folder: Path) -> list[Envelope]:
    return [Envelope(**json.loads(line)) for line in (folder / "events.jsonl").read_text().splitlines()]


def _cases(folder: Path) -> list[list[str]]:
    root = ET.fromstring((folder / "junit.xml").read_bytes())
    return [[child.tag for child in case if child.tag != "system-out"] for case in root.iter("testcase")]


def _said(pipe: Path) -> bytes:
    """What comes through a named pipe; a writer that never comes does not hang the test."""
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        select.select([handle], [], [], 60)
        return os.read(handle, 100)
    finally:
        os.close(handle)


def test_a_run_leaves_everything_a_person_needs(bench, tmp_path):
    """Outside of any CI system as well: the log, JUnit XML, reports, logs, the plan and the data."""
    plan = bench.plan(write("b.txt", "b\n"), shell("echo said; echo c > c.txt", title="c", owns=["c.txt"]))
    art = tmp_path / "art"
    result = bench.call("ci", str(plan), "--artifacts", str(art))
    assert result.code == 0, result.err
    assert obeyed(result.out + result.err) == []
    assert sorted(str(path.relative_to(art)) for path in art.rglob("*.*")) == [
        "events.jsonl",
        "junit.xml",
        "logs/step-1-attempt-1.log",
        "plan.json",
        "run.md",
        "step-0-result.json",
        "step-0-result.md",
        "step-1-result.json",
        "step-1-result.md",
        "summary.json",
    ]
    assert verify(_log(art)) == []
    assert [line.as_dict() for line in _log(art)] == bench.events()
    assert _cases(art) == [[], []]
    status = bench.call("status", "latest", "--json").data
    del status["holder"]
    assert _summary(art) == {**status, "error": None}
    assert (art / "plan.json").read_text() == plan.read_text()


def test_a_failed_run_is_told_completely(bench, tmp_path, runner):
    """Its exit code is the run's, and every surface has the same verdicts."""
    plan = bench.plan(
        write("b.txt", "b\n", title="fine"),
        shell("echo '::error::evil'; echo '##[add-path]/evil'; exit 3", title="bad ##[x]", owns=["c.txt"]),
        write("d.txt", "d\n", needs=[1]),
    )
    art = tmp_path / "art"
    result = bench.call("ci", str(plan), "--artifacts", str(art))
    assert result.code == 1
    assert [step["close_reason"] for step in _summary(art)["steps"]] == ["merged", "agent_failed", "dependency_failed"]
    assert _cases(art) == [[], ["failure"], ["skipped"]]
    assert verify(_log(art)) == []
    assert _log(art)[-1].type == "run.finished"
    run_id = _summary(art)["run_id"]
    assert outputs_in((runner / "output").read_text()) == {
        "status": "failed",
        "run_id": run_id,
        "branch": f"orchestrix/{run_id}/integration",
        "merged_steps": "1",
        "failed_steps": "2",
        "report_dir": str(art),
    }
    assert (runner / "step_summary").read_text().startswith(f"## Orchestrix: run {run_id} failed\n")
    commands = [line.split("::")[1].split(" ")[0] for line in obeyed(result.out)]
    assert commands == ["group", "endgroup"] * 3 + ["error"]
    assert obeyed(result.err) == []
    assert "\\u003a:error::evil" in result.out


def test_children_see_neither_the_token_nor_the_runners_files(bench, tmp_path, runner):
    """The environment of a `command` step holds nothing of GitHub's; no file of the runner is changed by it."""
    script = 'env > seen.txt; for f in "$GITHUB_OUTPUT" "$GITHUB_ENV"; do echo "evil=1" >> "${f:-/dev/null}"; done'
    art = tmp_path / "art"
    result = bench.call("ci", str(bench.plan(shell(script, owns=["seen.txt"]))), "--artifacts", str(art))
    assert result.code == 0, result.err
    seen = bench.git("show", f"{_summary(art)['head']}:seen.txt")
    assert [line for line in seen.splitlines() if line.startswith(("GITHUB_", "ACTIONS_", "RUNNER_"))] == []
    assert set(outputs_in((runner / "output").read_text())) == {
        "status",
        "run_id",
        "branch",
        "merged_steps",
        "failed_steps",
        "report_dir",
    }
    assert (runner / "env").read_text() == (runner / "path").read_text() == ""
    kept = b"".join(path.read_bytes() for path in art.rglob("*.*"))
    assert [token for token in _TOKENS if token.encode() in kept] == []
    assert [token for token in _TOKENS if token in result.out + result.err] == []


def test_a_plan_that_is_wrong_is_told_where(bench, tmp_path, runner, monkeypatch):
    """Exit 2, an annotation at the line, and files that carry the error."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(bench.files))
    (bench.files / "plan.yaml").write_text("version: 1\nsteps:\n  - titel: '##[x]'\n    command: [x]\n")
    art = tmp_path / "art"
    result = bench.call("ci", "plan.yaml", "--artifacts", str(art))
    assert result.code == 2
    assert obeyed(result.out)[0].startswith("::error file=plan.yaml,line=3,title=plan_invalid::")
    assert obeyed(result.err) == []
    assert _cases(art) == [["error"]]
    assert {name: _summary(art)[name] for name in ("run_id", "status", "exit_code", "steps")} == {
        "run_id": None,
        "status": "failed",
        "exit_code": 2,
        "steps": [],
    }
    assert _summary(art)["error"]["code"] == "plan_invalid"
    assert outputs_in((runner / "output").read_text())["status"] == "failed"


def test_json_is_one_envelope_that_no_runner_obeys(bench, runner):
    """Commands for the runner go to stderr then, and the data arrive as they are."""
    result = bench.call("ci", str(bench.plan(write("b.txt", "b\n", title="a ##[error]x"))), "--json")
    assert result.code == 0, result.err
    assert obeyed(result.out) == []
    assert result.steps[0]["title"] == "a ##[error]x"
    assert obeyed(result.err)[0].startswith("::group::step 0")


def test_the_default_folder_does_not_show_in_git_status(bench):
    """Not even when the run could not start."""
    (bench.root / "plan.json").write_text("{}")
    assert bench.call("ci", str(bench.root / "plan.json")).code == 2
    assert (bench.files / ".orchestrix/local/ci/junit.xml").is_file()
    assert bench.git("status", "--porcelain") == ""


def test_landing_is_part_of_the_job(bench, tmp_path):
    """What is published is the run as it stands after the branch moved, or the reason why it did not."""
    art = tmp_path / "art"
    done = bench.call("ci", str(bench.plan(write("b.txt", "b\n"))), "--land", "--artifacts", str(art))
    assert done.code == 0, done.err
    assert bench.git("rev-parse", "main") == _summary(art)["landed"] == _summary(art)["head"]
    assert _log(art)[-1].type == "run.landed"
    (bench.files / "c.txt").write_text("in the way\n")
    refused = bench.call("ci", str(bench.plan(write("c.txt", "c\n"))), "--land", "--artifacts", str(art), "--json")
    assert refused.code == 4
    assert refused.envelope["error"]["code"] == _summary(art)["error"]["code"] == "landing_refused"
    assert _cases(art) == [[], ["error"]]


def test_the_parent_is_strict_by_default(bench, tmp_path):
    """A step during which the checkout changed fails in CI, and at a desk it does not."""
    script = f"echo b > b.txt; echo x > {bench.files}/planted.txt"
    plan = str(bench.plan(shell(script, owns=["b.txt"])))
    flags = ("--sandbox", "none", "--json", "--artifacts", str(tmp_path / "art"))
    assert bench.call("ci", plan, *flags).reasons == ["parent_changed"]
    (bench.files / "planted.txt").unlink()
    assert bench.call("ci", plan, *flags, "--no-strict-parent").reasons == ["merged"]


def test_an_outcome_that_cannot_be_published_is_not_a_success(bench, runner, monkeypatch):
    """The run succeeded, but later steps would read nothing: exit 3. A failed run keeps its own code."""
    monkeypatch.setenv("GITHUB_OUTPUT", str(runner))
    result = bench.call("ci", str(bench.plan(write("b.txt", "b\n"))))
    assert result.code == 3
    assert "orchestrix: the outputs could not be written: Is a directory" in result.err
    failed = bench.call("ci", str(bench.plan(shell("exit 1"))))
    assert failed.code == 1
    assert "orchestrix: the outputs could not be written: Is a directory" in failed.err


def test_a_cancelled_job_still_tells_how_far_it_came(bench: Workbench, tmp_path):
    """A runner sends a signal first: the log, the XML and the data are written before the end."""
    art = tmp_path / "art"
    started = tmp_path / "started"
    os.mkfifo(started)
    plan = bench.plan(shell(f"echo yes > {started}; sleep 60", owns=["b.txt"]), write("c.txt", "c\n", needs=[0]))
    process = bench.process("ci", str(plan), "--artifacts", str(art), "--sandbox", "none")
    assert _said(started) == b"yes\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert _summary(art)["status"] == "cancelled"
    assert _summary(art)["error"]["code"] == "interrupted"
    assert _log(art)[-1].type == "run.cancelled"
    assert verify(_log(art)) == []
    assert _cases(art) == [["error"], ["skipped"], ["error"]]
