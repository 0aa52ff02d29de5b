"""What cannot be removed is named, with the command that removes it, and decides no exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.coordinators import KILLED, ended, wait_until
from support.parts import MERE_USER, missing, needs_root
from support.workbench import ROOT, Workbench, shell, write


@pytest.fixture
def immutable(tmp_path: Path) -> Iterator[None]:
    """Files can be made immutable here, and none stays so after the test."""
    probe = tmp_path / "probe"
    probe.touch()
    if subprocess.run(["chattr", "+i", probe], capture_output=True, check=False).returncode:
        needs_root("only root can make files immutable")
        missing("files cannot be made immutable here")
    yield
    subprocess.run(["chattr", "-R", "-i", tmp_path], capture_output=True, check=False)


@pytest.mark.parametrize("what", ["file", "folder", "."])
@pytest.mark.usefixtures("immutable")
def test_what_an_agent_made_immutable_stays_and_is_named(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """This run and the next one succeed; run, clean and doctor name the file, and the printed command removes it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = f"mkdir folder; echo x > folder/inner; echo x > file; chattr +i {what}"
    plan = str(bench.plan(shell(script, owns=["**"])))
    done = bench.call("run", plan, "--sandbox", "none")
    assert done.code == 0, done.err
    assert "cannot be removed (" in done.err
    assert bench.run(write("y.txt", "y\n")).code == 0
    cleaned = bench.call("clean", "--json")
    assert cleaned.code == 0
    (stuck, *_) = cleaned.data["stuck"]
    assert str(tmp_path / "state") in stuck["what"]
    doctor = bench.call("doctor", "--json")
    assert doctor.code == 0
    assert [row["hint"] for row in doctor.data["checks"] if stuck["what"] in row["message"]] == [stuck["remove"]]
    for row in cleaned.data["stuck"]:
        subprocess.run(row["remove"].replace("sudo ", ""), shell=True, check=True)
    assert bench.call("clean", "--json").data["stuck"] == []


def test_what_is_another_users_stays_and_is_named(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mere user's run, clean and doctor cannot remove it, name it and succeed; the printed command removes it as root."""
    needs_root("only root can give a folder to another user")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = "echo x > x.txt; touch .up; until [ -e theirs/go ]; do sleep 0.02; done; rm .up"
    flags = ("--sandbox", "none", "--workspace", "checkout")
    run = _as_a_user(bench, "run", str(bench.plan(shell(script, owns=["**"]))), *flags)
    wait_until(lambda: run.poll() is not None or [*(tmp_path / "state").glob("orchestrix/*/*/trees/*/.up")], "the step")
    (up,) = (tmp_path / "state").glob("orchestrix/*/*/trees/*/.up")
    theirs = up.with_name("making")
    theirs.mkdir()
    (theirs / "go").touch()
    for path in (theirs / "go", theirs):
        os.chown(path, 4242, 4242)
    theirs.rename(up.with_name("theirs"))
    said = run.communicate()
    assert run.returncode == 0, said
    assert "go cannot be removed (sudo " in said[1]
    clean, doctor = (_as_a_user(bench, command, "--json") for command in ("clean", "doctor"))
    (stuck,) = json.loads(clean.communicate()[0])["data"]["stuck"]
    assert stuck["what"].endswith("/go")
    rows = json.loads(doctor.communicate()[0])["data"]["checks"]
    assert [row["hint"] for row in rows if stuck["what"] in row["message"]] == [stuck["remove"]]
    assert (clean.returncode, doctor.returncode) == (0, 0)
    subprocess.run(stuck["remove"].replace("sudo ", ""), shell=True, check=True)
    assert bench.call("clean", "--json").data["stuck"] == []


def _as_a_user(bench: Workbench, *args: str) -> subprocess.Popen[str]:
    """The command line without any right of root's."""
    return subprocess.Popen(
        [*MERE_USER, sys.executable, "-m", "harness", *args],
        cwd=bench.files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_doctor_names_what_a_killed_landing_left(bench: Workbench) -> None:
    """With the run, the branch and the command that settles it; it decides no exit code, and then it is gone."""
    run = bench.run(write("new.txt", "new\n")).data
    # The filter stops git in the middle of the files.
    bench.git("config", "filter.stop.smudge", "touch .git/reached; sleep 1000; cat")
    (bench.files / ".git/info/attributes").write_text("new.txt filter=stop\n")
    landing = subprocess.Popen(
        [sys.executable, "-m", "harness", "land", run["run_id"]],
        cwd=bench.files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    wait_until(lambda: landing.poll() is not None or (bench.files / ".git/reached").exists(), "git in the files")
    assert landing.poll() is None
    os.killpg(landing.pid, signal.SIGKILL)
    landing.wait()
    bench.git("config", "--unset", "filter.stop.smudge")
    doctor = bench.call("doctor", "--json")
    assert doctor.code == 0
    (row,) = [row for row in doctor.data["checks"] if row["name"] == "landing"]
    assert not row["ok"]
    assert f"a landing of run {run['run_id']} in {bench.files} is not finished: refs/heads/main from " in row["message"]
    assert f"`orchestrix land {run['run_id']}`" in row["hint"]
    assert bench.call("land", run["run_id"]).code == 0
    assert "landing" not in [row["name"] for row in bench.call("doctor", "--json").data["checks"]]


def test_locks_that_a_killed_git_left_among_our_refs_go(bench: Workbench) -> None:
    """Doctor names them and clean removes them; a lock on a ref of the user's is not ours to judge."""
    run = bench.run(write("x.txt", "x\n")).data["run_id"]
    ours = bench.files / f".git/refs/heads/orchestrix/{run}/0/work.lock"
    theirs = bench.files / ".git/refs/heads/main.lock"
    ours.parent.mkdir(parents=True, exist_ok=True)
    for lock in (ours, theirs):
        lock.touch()
    doctor = bench.call("doctor", "--json")
    assert doctor.code == 0
    assert [row["message"] for row in doctor.data["checks"] if ".lock" in row["message"]] == [f"{ours} is there"]
    assert [row["what"] for row in bench.call("clean", "--json").data["removed"]] == [str(ours)]
    assert (ours.exists(), theirs.exists()) == (False, True)
    theirs.unlink()


def test_a_resume_removes_the_locks_that_a_killed_coordinator_left(bench: Workbench) -> None:
    """Also on a ref that is gone by then and is never written again; those of other runs are not its business."""
    flags = ("run", str(bench.plan(write("x.txt", "x\n"))), "--run-id", "r1")
    assert ended(bench, *flags, env={"ORCHESTRIX_FAILPOINT": "after:agent.subagent_closed"}).code == KILLED
    refs = bench.files / ".git/refs"
    ours = [refs / "heads/orchestrix/r1/0/work.lock", refs / "orchestrix/keep/r1/0/attempt-1.lock"]
    others = refs / "heads/orchestrix/r12/0/work.lock"
    for lock in (*ours, others):
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    assert bench.call("resume", "r1").code == 0
    assert ([lock for lock in ours if lock.exists()], others.exists()) == ([], True)
