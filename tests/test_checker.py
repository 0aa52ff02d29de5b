"""The independent checker accepts what the harness left, and finds every fault that is planted in a copy of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fixtures import repos
from tests.support.checker import check, fingerprint
from tests.support.evidence import DATABASE, logs
from tests.support.log_claims import ENVELOPE, canonical

ROOT = Path(__file__).resolve().parents[1]
RUN = "sample"
CHECKER = ROOT / "tests" / "support" / "checker.py"
Event = dict[str, Any]
GUESS: Event = {"head": "0" * 40, "commit": "1" * 40, "tree": "2" * 40, "assumes": ["0"]}


def step(script: str, owns: str, **fields: Any) -> Event:
    return {"title": f"Write {owns}", "owns": [owns], "command": ["sh", "-c", script], **fields}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A run with a merge, a gated merge, a conflict, a failure and a retry, and the parent's fingerprint before it."""
    root = tmp_path_factory.mktemp("finished")
    repo = repos.small(root / "repo")
    retried = f"echo try >> eps.txt; test -e {root}/flag || {{ touch {root}/flag; exit 1; }}"
    plan = {
        "version": 1,
        "overlap": "allow",
        "steps": [
            step("mkdir a; echo a > a/1; echo b > a/2", "a/**"),
            step("echo beta > shared.txt", "shared.txt", checks=["test -f shared.txt"]),
            step("echo gamma > shared.txt", "shared.txt"),
            step("echo delta > delta.txt; exit 3", "delta.txt"),
            step(retried, "eps.txt", retries=1),
        ],
    }
    (root / "plan.json").write_text(json.dumps(plan))
    before = fingerprint(repo)
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "PYTHONPATH": str(ROOT), "ORCHESTRIX_BACKOFF_BASE": "1ms"}
    command = [sys.executable, "-m", "harness", "run", "../plan.json", "--run-id", RUN, "--sandbox", "none"]
    done = subprocess.run(command, cwd=repo, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    return repo, before


@pytest.fixture
def copy(finished: tuple[Path, dict[str, str]], tmp_path: Path) -> Path:
    """A copy to plant a fault in."""
    return Path(shutil.copytree(finished[0], tmp_path / "copy", symlinks=True))


def edit_rows(repo: Path, statement: str, *values: Any) -> None:
    """Changes the database behind the harness' back: its triggers are dropped first."""
    with closing(sqlite3.connect(repo / DATABASE)) as database, database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            database.execute(f"DROP TRIGGER {name}")
        database.execute(statement, values)


def forge(repo: Path, change: Callable[[list[Event]], list[Event]]) -> None:
    """Rewrites the log with a valid chain, as somebody would who knows the hash rule."""
    (log,) = logs(repo)
    edit_rows(repo, "DELETE FROM events")
    previous = "0" * 64
    with closing(sqlite3.connect(repo / DATABASE)) as database, database:
        for seq, event in enumerate(change(log.events), 1):
            line = event | {"seq": seq, "prev_hash": previous}
            body = canonical({name: line[name] for name in ENVELOPE})
            previous = hashlib.sha256(body.encode()).hexdigest()
            row = line | {"hash": previous, "payload": canonical(line["payload"])}
            names = ", ".join(row)
            database.execute(f"INSERT INTO events ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
        database.execute("UPDATE runs SET last_seq = ?, last_hash = ?", (seq, previous))


def without(kind: str, task: str) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [event for event in events if (event["type"], event["task_id"]) != (kind, task)]


def altered(kind: str, task: str | None, **values: Any) -> Callable[[list[Event]], list[Event]]:
    def change(events: list[Event]) -> list[Event]:
        return [
            event | {"payload": event["payload"] | values}
            if (event["type"], event["task_id"]) == (kind, task)
            else event
            for event in events
        ]

    return change


def moved(kind: str, task: str, before: tuple[str, str]) -> Callable[[list[Event]], list[Event]]:
    """The one event is told earlier: in front of the other one."""

    def change(events: list[Event]) -> list[Event]:
        (picked,) = [event for event in events if (event["type"], event["task_id"]) == (kind, task)]
        rest = [event for event in events if event is not picked]
        place = next(n for n, event in enumerate(rest) if (event["type"], event["task_id"]) == before)
        return [*rest[:place], picked, *rest[place:]]

    return change


def gated_ahead(*told: tuple[str, Event]) -> Callable[[list[Event]], list[Event]]:
    """In front of step 1's check on the merged tree, the log tells of a gate ahead."""

    def change(events: list[Event]) -> list[Event]:
        place = next(
            n for n, event in enumerate(events) if event["task_id"] == "1" and event["payload"].get("where") == "merged"
        )
        sub_agent = {name: events[place]["payload"][name] for name in ("sub_agent_id", "step_idx", "task")}
        extra = [
            events[place] | {"id": f"{RUN}.x{n}", "type": f"gate.{kind}", "payload": sub_agent | values}
            for n, (kind, values) in enumerate(told)
        ]
        return [*events[:place], *extra, *events[place:]]

    return change


def doubled(kind: str, task: str) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [
        copy for event in events for copy in [event] * (1 + ((event["type"], event["task_id"]) == (kind, task)))
    ]


def test_a_finished_run_is_intact(finished: tuple[Path, dict[str, str]]) -> None:
    """What the harness leaves after merge, conflict, failure and retry satisfies every claim."""
    repo, before = finished
    assert check(repo, before=before) == []


def test_the_script_says_the_same(finished: tuple[Path, dict[str, str]], copy: Path) -> None:
    """As a script it exits 0 in silence on an intact repository, and 1 with a sentence on a broken one."""
    good = subprocess.run([sys.executable, CHECKER, finished[0], RUN], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "")
    repos.git(copy, "update-ref", "-d", f"refs/orchestrix/keep/{RUN}/3/attempt-1")
    bad = subprocess.run([sys.executable, CHECKER, copy], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert f"I1: refs/orchestrix/keep/{RUN}/3/attempt-1 should hold" in bad.stdout


def test_it_does_not_import_the_harness() -> None:
    """A witness that shares code with the accused is none."""
    code = "import sys, tests.support.checker; print([name for name in sys.modules if name.startswith('harness')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_log_is_said(tmp_path: Path) -> None:
    """A repository without a run is not called intact."""
    assert check(repos.small(tmp_path)) == [f"I3: there is no log at {tmp_path / DATABASE}"]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE events SET summary = 'x' WHERE seq = 3", "I3: seq 3 (agent.subagent_created) was changed"),
        ("DELETE FROM events WHERE seq = 9", "I3: seq 10 stands where 9 should"),
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "I3: runs sample: last_seq is"),
        ("UPDATE runs SET status = 'succeeded'", "I3: runs sample: status is 'succeeded', but the log says 'failed'"),
        ("UPDATE runs SET head = base", "I3: runs sample: head is"),
        ("UPDATE sub_agents SET final_status = 'completed'", "final_status is 'completed', but the log says 'failed'"),
        (
            "UPDATE sub_agents SET context_json = '{}' WHERE step_idx = 1",
            "I3: sub_agents sample/1: context_json is '{}'",
        ),
        ("DELETE FROM sub_agents WHERE step_idx = 2", "I3: sub_agents sample/2: the row is missing"),
    ],
)
def test_an_edited_database_is_found(copy: Path, statement: str, found: str) -> None:
    """Log lines and rows that somebody changed, removed or cut off."""
    edit_rows(copy, statement)
    assert any(found in problem for problem in check(copy))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (without("agent.subagent_closed", "1"), "I3: the run has ended, but sample/1 is completed, not closed"),
        (doubled("agent.subagent_closed", "0"), "I3: sample/0 is closed: agent.subagent_closed"),
        (without("agent.subagent_created", "2"), "I3: contracts before the start are of steps [0, 1, 3, 4]"),
        (without("agent.subagent_started", "0"), "I3: sample/0 is created: agent.subagent_attempt"),
        (altered("agent.subagent_closed", "0", close_reason=""), "agent.subagent_closed lacks close_reason"),
        (
            altered("agent.subagent_closed", "3", final_status="completed"),
            "closes sample/3 as completed, but it is failed",
        ),
        (without("integration.started", "1"), "I3: the merge of sample/1 has no integration.started before it"),
        (without("workspace.preparing", "0"), "I3: attempt 1 of sample/0 has no workspace.preparing before it"),
        (moved("agent.worktree_merged", "1", ("agent.worktree_merged", "0")), "I5: step 1 was merged while step 0 was"),
        (doubled("agent.worktree_merged", "0"), "I4: step 0 was integrated twice"),
        (without("check.finished", "1"), "I6: sample/1 was merged, but `test -f shared.txt` never passed on tree"),
        (gated_ahead(("speculated", GUESS)), "is a check of sample/1 on a tree that is only assumed"),
        (gated_ahead(("speculation_held", GUESS)), "ends a gate ahead of sample/1 that was never begun"),
        (
            gated_ahead(("speculated", GUESS), ("speculation_held", GUESS)),
            "I6: sample/1 was gated ahead on 000000000000, but the head is",
        ),
        (altered("run.finished", None, exit_code=5), "I9: the run finished with exit_code 5, but its steps say 4"),
        (altered("run.finished", None, status="succeeded"), "I9: the run finished with status 'succeeded'"),
        (
            altered("snapshot.taken", "0", changed_paths=["a/1"], changed_total=1),
            "I3: attempt 1 of sample/0 changed [a/1, a/2]",
        ),
        (altered("agent.subagent_failed", "3", kept_ref=None), "I1: sample/3 failed with changes in [delta.txt]"),
        (altered("agent.worktree_merged", "1", tree="0" * 40), "I6: the merge commit of sample/1 holds tree"),
        (without("workspace.removed", "4"), "I3: the log never says that 4-attempt1-1 was removed"),
    ],
)
def test_a_forged_log_is_found(copy: Path, change: Callable[[list[Event]], list[Event]], found: str) -> None:
    """A false story with a valid chain contradicts the specification, its own rows or the repository."""
    forge(copy, change)
    problems = check(copy)
    assert any(found in problem for problem in problems), problems


def merge(repo: Path, *parents: str) -> str:
    """A merge commit with the tree of its last parent, made behind the harness' back."""
    options = [option for parent in parents for option in ("-p", parent)]
    return repos.git(repo, "commit-tree", f"{parents[-1]}^{{tree}}", *options, "-m", "Forged").strip()


def test_a_moved_integration_ref_is_found(copy: Path) -> None:
    """Behind, beside or beyond what the log merged: all three show."""
    ref = f"refs/heads/orchestrix/{RUN}/integration"
    tip = repos.git(copy, "rev-parse", ref).strip()
    for wrong in (f"{tip}^1", "refs/heads/main", merge(copy, tip, "refs/heads/main")):
        repos.git(copy, "update-ref", ref, wrong)
        assert any(f"I5: {ref} holds" in problem for problem in check(copy, RUN)), wrong
    repos.git(copy, "update-ref", "-d", ref)
    assert f"{RUN}: I1: {ref} is gone" in check(copy, RUN)


def test_merges_in_another_order_are_found(copy: Path) -> None:
    """The same snapshots merged in another order are not the run that was logged."""
    ref = f"refs/heads/orchestrix/{RUN}/integration"
    tip, before, base = (repos.git(copy, "rev-parse", f"{ref}{part}").strip() for part in ("", "^1", "^1^1^1"))
    late, early = (repos.git(copy, "rev-parse", f"{commit}^2").strip() for commit in (tip, before))
    repos.git(copy, "update-ref", ref, merge(copy, merge(copy, base, late), early))
    assert any(f"I5: {ref} holds" in problem for problem in check(copy, RUN))


def test_lost_work_is_found(copy: Path) -> None:
    """A deleted or moved keep ref, and a snapshot that nothing reaches any more."""
    kept = f"refs/orchestrix/keep/{RUN}/3/attempt-1"
    commit = repos.git(copy, "rev-parse", kept).strip()
    repos.git(copy, "update-ref", kept, "refs/heads/main")
    assert (
        f"{RUN}: I1: {kept} should hold {commit[:12]}, but is at {repos.git(copy, 'rev-parse', 'main')[:12]}"
        in check(copy)
    )
    repos.git(copy, "update-ref", "-d", f"refs/heads/orchestrix/{RUN}/3/work")
    assert f"{RUN}: I1: snapshot {commit[:12]} (attempt 1 of {RUN}/3) is not reachable from any ref" in check(copy)


def test_a_damaged_object_store_is_found(copy: Path) -> None:
    """Git's own check is part of ours."""
    blob = repos.git(copy, "rev-parse", "HEAD:README.md").strip()
    (copy / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert any(problem.startswith("I1: git fsck") and blob in problem for problem in check(copy))


def test_left_over_workspaces_are_found(copy: Path) -> None:
    """A worktree that git still lists, and a folder that the log says was removed."""
    admin = copy / ".git" / "worktrees" / f"orchestrix.{RUN}.0"
    admin.mkdir(parents=True)
    assert f"{RUN}: I8: worktree entry {admin.name} is left" in check(copy)
    folder = copy.parent / "trees" / "0"
    folder.mkdir(parents=True)
    forge(copy, altered("workspace.preparing", "0", path=str(folder)))
    assert f"{RUN}: I8: {folder} is left on disk" in check(copy)


@pytest.mark.parametrize(
    ("touch", "found"),
    [
        (lambda repo: (repo / "README.md").write_text("x"), "file README.md changed"),
        (lambda repo: (repo / "src/app.py").chmod(0o755), "file src/app.py changed"),
        (lambda repo: (repo / "new").symlink_to("README.md"), "file new is new"),
        (lambda repo: (repo / "docs/guide.md").unlink(), "file docs/guide.md is gone"),
        (
            lambda repo: (repo / ".git/hooks").mkdir(exist_ok=True) or (repo / ".git/hooks/x").write_text(""),
            "git hooks/x is new",
        ),
        (lambda repo: repos.git(repo, "config", "core.hooksPath", "x"), "git config changed"),
        (lambda repo: repos.git(repo, "update-index", "--chmod=+x", "README.md"), "git index changed"),
        (lambda repo: repos.git(repo, "branch", "other"), "ref refs/heads/other is new"),
        (lambda repo: repos.git(repo, "symbolic-ref", "HEAD", "refs/heads/other"), "git HEAD changed"),
        (lambda repo: repos.git(repo, "update-ref", "refs/stash", "HEAD"), "ref refs/stash is new"),
    ],
)
def test_a_touched_parent_is_found(copy: Path, touch: Callable[[Path], object], found: str) -> None:
    """One changed byte, mode, link, hook, setting, index entry or ref of the user's is enough."""
    before = fingerprint(copy)
    touch(copy)
    assert f"I2: the parent was touched: {found}" in check(copy, before=before)


def test_landing_is_no_touch(copy: Path) -> None:
    """The one change that a user asks for: the target and its checkout move, the rest may not."""
    before = fingerprint(copy)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "harness", "land", RUN, "--partial"]
    subprocess.run(command, cwd=copy, env=env, capture_output=True, check=True)
    assert check(copy, before=before) == []
    repos.git(copy, "config", "user.name", "Somebody")
    assert check(copy, before=before) == ["I2: the parent was touched: git config changed"]
    repos.git(copy, "update-ref", "refs/heads/main", "main~1")
    assert any("I2: refs/heads/main does not hold the landed" in problem for problem in check(copy))
