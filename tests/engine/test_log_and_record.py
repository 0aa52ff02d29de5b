"""The log is the truth: fold equals rows, tampering is found, and a finished run is a git ref."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from support.checker import check
from support.workbench import Workbench, shell, write


def mixed(bench: Workbench) -> str:
    """A run with a merge, a conflict, a failure and what depended on it."""
    done = bench.run(
        shell("sed -i s/two/2/ a.txt", owns=["a.txt"], checks=["true"]),
        shell("sed -i s/two/II/ a.txt", owns=["a.txt"]),
        shell("exit 1", owns=["x"]),
        write("z.txt", "z\n", needs=[2]),
        overlap="allow",
    )
    return str(done.data["run_id"])


EDITS = (
    "update runs set status = 'succeeded'",
    "update sub_agents set state = 'running' where step_idx = 1",
    "update sub_agents set context_json = replace(context_json, 'a.txt', 'b.txt')",
    "update events set payload = replace(payload, 'merge_conflict', 'merged')",
    "update events set summary = 'nothing to see' where seq = 5",
    "update events set ts = '2001-01-01T00:00:00.000000Z' where seq = 3",
    "delete from events where seq = (select max(seq) from events)",
    "delete from events where seq = 7",
    "delete from sub_agents where step_idx = 3",
)


def test_an_edited_copy_of_the_database_is_found_by_audit(bench: Workbench) -> None:
    """The database itself refuses; with the triggers gone, `audit --db` says what does not verify (exit 5)."""
    mixed(bench)
    source = sqlite3.connect(bench.files / ".orchestrix/local/state.db")
    for edit in EDITS:
        copy = bench.root / "copy.db"
        copy.unlink(missing_ok=True)
        source.execute("vacuum into ?", (str(copy),))
        assert bench.call("audit", "--db", str(copy), "--json").data["intact"] is True
        database = sqlite3.connect(copy)
        if "events" in edit:
            with pytest.raises(sqlite3.DatabaseError):
                database.execute(edit)
            database.rollback()
        for (trigger,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {trigger}")
        database.execute(edit)
        database.commit()
        database.close()
        found = bench.call("audit", "--db", str(copy), "--json")
        assert (found.code, found.data["intact"]) == (5, False), edit
    source.close()
    assert bench.call("audit").code == 0


def test_a_finished_run_is_a_record_that_can_be_carried_away(bench: Workbench, tmp_path: Path) -> None:
    """refs/orchestrix/runs/<run>: plan, contracts, the whole log and every report; pushed and fetched like any ref."""
    run = mixed(bench)
    far = tmp_path / "far"
    bench.git("init", "-q", "--bare", str(far))
    bench.git("push", "-q", str(far), f"refs/orchestrix/runs/{run}")
    tree = bench.git("ls-tree", "-r", "--name-only", f"refs/orchestrix/runs/{run}", cwd=far).splitlines()
    assert {"plan.json", "events.jsonl", "reports/run.md"} <= set(tree)
    assert {f"contracts/step-{step}.json" for step in range(4)} <= set(tree)
    assert {f"reports/step-{step}-result.{kind}" for step in range(4) for kind in ("md", "json")} <= set(tree)
    lines = bench.git("show", f"refs/orchestrix/runs/{run}:events.jsonl").splitlines()
    assert [json.loads(line) for line in lines] == bench.events(run)
    assert json.loads(lines[-1])["type"] == "run.finished"
    assert check(bench.files) == []


def test_every_child_has_the_sequence_of_the_specification(bench: Workbench) -> None:
    """Exactly one close for each, after everything else; seq without a gap; steps close in plan order."""
    run = mixed(bench)
    events = bench.events(run)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    closed = [event["payload"] for event in events if event["type"] == "agent.subagent_closed"]
    assert sorted(fact["step_idx"] for fact in closed) == [0, 1, 2, 3]
    assert {name for fact in closed for name in fact} >= {"sub_agent_id", "step_idx", "final_status", "close_reason"}
    for step in "0123":
        assert bench.types(step, run)[0] == "agent.subagent_created"
        assert bench.types(step, run)[-1] == "agent.subagent_closed"
    assert events[0]["type"] == "run.created"
    assert all({"type", "seq", "ts", "summary", "payload"} <= set(event) for event in events)
