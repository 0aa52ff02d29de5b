"""What cannot be removed is named, with the command that removes it, and decides no exit code."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.parts import missing, needs_root
from support.workbench import Workbench, shell, write


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
