"""Nothing is lost: clean removes what is merged or kept and nothing else; restore brings kept work back."""

from __future__ import annotations

from pathlib import Path

from support.workbench import Workbench, shell, write


def objects(bench: Workbench) -> set[str]:
    return set(bench.git("rev-list", "--all", "--objects").split())


def test_clean_and_restore_never_lose_work(bench: Workbench) -> None:
    """Merged branches and kept workspaces go; the failed step's work survives and comes back as a branch."""
    done = bench.run(
        write("x.txt", "x\n"),
        shell("echo half > half.txt; exit 1", owns=["half.txt"]),
        flags=("--keep",),
    )
    run = done.data["run_id"]
    trees = [Path(event["payload"]["path"]) for event in bench.events() if event["type"] == "workspace.preparing"]
    kept = [path for path in trees if path.is_dir()]
    assert kept
    (kept[-1] / "afterthought.txt").write_text("a person worked here\n")
    before = objects(bench)
    planned = bench.call("clean", "--dry-run", "--json")
    assert all(path.is_dir() for path in kept)
    cleaned = bench.call("clean", "--json")
    assert {row["what"] for row in cleaned.data["removed"]} == {row["what"] for row in planned.data["removed"]}
    assert not any(path.exists() for path in trees)
    assert before <= objects(bench)
    assert "a person worked here" in [
        bench.git("show", f"{ref}:afterthought.txt", check=False)
        for ref in bench.git("for-each-ref", "--format=%(refname)", f"refs/orchestrix/keep/{run}").split()
    ]
    assert bench.call("clean").out == "nothing to clean\n"
    restored = bench.call("restore", run, "1", "--json")
    assert [row["step"] for row in restored.data["restored"]] == [1, 1]  # the attempt, and what clean found after it
    trees = [bench.tree(row["branch"]) for row in restored.data["restored"]]
    assert [tree["half.txt"] for tree in trees] == ["half", "half"]
    assert [tree.get("afterthought.txt") for tree in trees] == [None, "a person worked here"]
    assert bench.call("restore", run).code == 0
    assert bench.git("worktree", "list").count("\n") == 0


def test_restore_has_nothing_to_do_after_success(bench: Workbench) -> None:
    """It says so with exit 2, and an unknown step or run is told apart."""
    bench.run(write("x.txt", "x\n"))
    assert bench.call("restore", "latest").code == 2
    assert "no step '7'" in bench.call("restore", "latest", "7").err
    assert "no run 'nope'" in bench.call("restore", "nope").err


def test_restore_brings_every_kept_attempt_back(bench: Workbench) -> None:
    """After a retry that failed and one that succeeded, all that is kept is listed; a branch of the user's is not moved."""
    script = f"cat {bench.root}/turn > turn.txt; ! grep -q bad turn.txt"
    turn = bench.root / "turn"
    turn.write_text("bad one\n")
    run = bench.run(shell(script, owns=["turn.txt"], retries=0)).data["run_id"]
    turn.write_text("bad two\n")
    assert bench.call("retry", run, "0").code == 1
    turn.write_text("good\n")
    assert bench.call("retry", run, "0").code == 0
    for args in ((run,), (run, "0")):
        rows = bench.call("restore", *args, "--json").data["restored"]
        assert [row["kept"] for row in rows] == ["attempt-2", "attempt-1"]
        assert [row["branch"].rpartition("/")[2] for row in rows] == ["0", "0-attempt-1"]
        assert [bench.tree(row["branch"])["turn.txt"] for row in rows] == ["bad two", "bad one"]
    bench.git("checkout", "-q", f"orchestrix-restore/{run}/0")
    mine = bench.commit({"mine.txt": "mine\n"})
    again = bench.call("restore", run, "--json").data["restored"]
    assert bench.git("rev-parse", f"orchestrix-restore/{run}/0") == mine
    assert [bench.tree(row["branch"])["turn.txt"] for row in again] == ["bad two", "bad one"]


def test_a_run_of_another_checkout_is_not_cleaned_away(bench: Workbench, tmp_path: Path) -> None:
    """Two checkouts of one repository have logs of their own: clean in one leaves a live run of the other alone."""
    other = tmp_path / "second" / bench.files.name
    bench.git("worktree", "add", "-q", "-b", "side", str(other))
    bench.run(write("x.txt", "x\n"))
    gate = bench.root / "gate"
    plan = bench.plan(shell(f"while ! test -e {gate}; do sleep 0.05; done; echo other > o.txt"))
    running = bench.process("run", str(plan), "-C", str(other), "--json")
    while not bench.git("for-each-ref", "refs/heads/orchestrix/**/work"):
        assert running.poll() is None
    cleaned = bench.call("clean", "--json")
    gate.touch()
    out, err = running.communicate(timeout=60)
    assert cleaned.data["removed"] == []
    assert running.returncode == 0, out + err


def test_keep_leaves_workspaces_and_the_next_run_does_not_mind(bench: Workbench) -> None:
    """--keep is for looking; a second run of the same plan makes its own."""
    for _ in range(2):
        assert bench.run(write("x.txt", "x\n"), flags=("--keep",)).code == 0
    doctor = bench.call("doctor", "--json")
    assert doctor.code == 0
    assert [row["name"] for row in doctor.data["checks"]].count("leftovers") == 2
