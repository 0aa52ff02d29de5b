"""Runs with sparse workspaces: a step sees what it owns, its checks see everything, and nothing else is different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.coordinators import KILLED, ended, kept, run_plan
from support.workbench import Workbench, shell

SPARSE = ("--workspace", "sparse")
WHOLE = ("checkout", "checks may read any file")
FILES = {f"part{number}/{name}": f"{number}{name}\n" for number in range(4) for name in ("x.txt", "deep/y.txt")}


@pytest.fixture(autouse=True)
def parts(bench: Workbench) -> None:
    """A repository of several parts."""
    bench.commit(FILES, "Parts")


def opened(bench: Workbench) -> list[tuple[str, str, str]]:
    """Purpose, kind and reason of every workspace of the latest run."""
    made = [event["payload"] for event in bench.events() if event["type"] == "workspace.preparing"]
    return [(payload["purpose"], payload["workspace"], payload["why"]) for payload in made]


def seen(path: str) -> str:
    """A script that writes down what is in the workspace, and looks before it writes."""
    return f"found=$(find . -type f ! -path './.git*' ! -path './.orchestrix/*' | sort); echo \"$found\" > {path}"


def test_a_step_sees_what_it_owns_the_top_and_what_the_settings_list(bench: Workbench) -> None:
    """The event says which kind and why, and so does the report, whatever was opened for checks later."""
    (bench.files / ".orchestrix").mkdir(exist_ok=True)
    (bench.files / ".orchestrix" / "config.toml").write_text(
        '[workspace]\nkind = "sparse"\nsparse = ["part3/deep", "src/*.py"]\n'
    )
    done = bench.run(shell(seen("part1/seen"), owns=["part1/**"], checks=["test -f part2/x.txt"]))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    listed = bench.tree(done.data["head"])["part1/seen"].split()
    assert listed == [
        *("./README.md", "./a.txt", "./part1/deep/y.txt", "./part1/x.txt"),
        *("./part3/deep/y.txt", "./src/lib.py"),
    ]
    assert opened(bench) == [("attempt1", "sparse", "asked for"), ("check1", *WHOLE)]
    front = bench.call("report", "latest", "--step", "0", "--json").data
    assert "'workspace': 'sparse', 'workspace_why': 'asked for'" in str(front)


def test_a_step_without_owns_gets_all_files(bench: Workbench) -> None:
    """Nothing can be left out for it, and the event says so."""
    assert bench.run(shell("cat part*/x.txt > all.txt"), flags=SPARSE).code == 0
    assert opened(bench) == [("attempt1", "checkout", "the step owns everything: nothing can be left out")]


def test_checks_judge_the_whole_tree(bench: Workbench) -> None:
    """One that passes only because files are left out does not pass; one that reads other files does."""
    steps = (
        shell("echo 1 > part0/x.txt", owns=["part0/**"], checks=["! test -e part1/x.txt"], retries=0),
        shell("echo 2 > part2/x.txt", owns=["part2/**"], checks=["cat part1/x.txt part3/x.txt"]),
    )
    done = bench.run(*steps, flags=SPARSE)
    assert (done.code, done.reasons) == (5, ["check_failed", "merged"])
    assert {(kind, why) for purpose, kind, why in opened(bench) if not purpose.startswith("attempt")} == {WHOLE}


def test_work_outside_of_what_a_step_owns_is_judged_as_ever(bench: Workbench) -> None:
    """New files, and files in the place of what is not checked out."""
    for script in ("mkdir part1; echo 1 > part1/x.txt", "mkdir part1; echo 1 > part1/new.txt", "echo 1 > part1"):
        done = bench.run(shell(script, owns=["part0/**"]), flags=SPARSE)
        assert (done.code, done.reasons) == (5, ["ownership_violation"])
        assert "part1" in done.steps[0]["message"]


def test_the_prompt_says_that_files_are_left_out(bench: Workbench) -> None:
    """And how to read them; a step that has them all is told nothing of the kind."""
    script = 'cat "$ORCHESTRIX_PROMPT_FILE" > part0/prompt; git show HEAD:part1/x.txt > part0/other'
    done = bench.run(shell(script, owns=["part0/**"]), flags=SPARSE)
    result = bench.tree(done.data["head"])
    assert "Not all files are in it" in result["part0/prompt"]
    assert result["part0/other"] == "1x.txt"
    done = bench.run(shell(script, owns=["part0/**"]), flags=("--workspace", "checkout"))
    assert "Not all files" not in bench.tree(done.data["head"])["part0/prompt"]


def test_preparation_and_setup(bench: Workbench) -> None:
    """What is copied and linked comes; what the start point has and the step does not see is not replaced by a link."""
    (bench.files / ".git" / "info" / "exclude").write_text(".env\n.orchestrix/\n")
    (bench.files / ".env").write_text("MODE=test\n")
    (bench.files / ".worktreeinclude").write_text(".env\n")
    (bench.files / ".orchestrix").mkdir(exist_ok=True)
    (bench.files / ".orchestrix" / "config.toml").write_text('[workspace]\nlink = ["part1", "part2/x.txt"]\n')
    script = "cat .env made > part0/x.txt; rm made; ! test -e part1 && ! test -e part2"
    done = bench.run(shell(script, owns=["part0/**"], setup=["echo made > made"]), flags=SPARSE)
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert bench.tree(done.data["head"])["part0/x.txt"] == "MODE=test\nmade"


@pytest.mark.parametrize(
    "place", ["before:workspace", "between:workspace", "after:process.agent", "after:snapshot", "after:process.check"]
)
def test_a_resume_goes_on_in_sparse_workspaces(bench: Workbench, place: str) -> None:
    """After kill -9: what was left out is not taken for deleted, the work is kept, and the result is whole."""
    step = shell("echo 1 > part0/x.txt; rm part0/deep/y.txt", owns=["part0/**"], checks=["test -f part3/x.txt"])
    args = run_plan(bench, step, flags=SPARSE)
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    wanted = {**bench.tree("main"), "part0/x.txt": "1"}
    del wanted["part0/deep/y.txt"]
    assert bench.tree(done.data["head"]) == wanted
    assert all(files == wanted for files in kept(bench))
    assert {kind for purpose, kind, _ in opened(bench) if purpose.startswith("attempt")} == {"sparse"}


def test_retry_diff_and_restore(bench: Workbench) -> None:
    """Work that failed can be looked at, had back and tried again."""
    script = f"echo half > part0/x.txt; test -e {bench.root / 'repaired'}"
    assert bench.run(shell(script, owns=["part0/**"], retries=0), flags=SPARSE).code == 1
    assert "part0/x.txt" in ended(bench, "diff", "latest", "0").out
    assert bench.call("restore", "latest").code == 0
    (branch,) = bench.git("for-each-ref", "--format=%(refname)", "refs/heads/orchestrix-restore/").split()
    assert bench.tree(branch) == {**bench.tree("main"), "part0/x.txt": "half"}
    Path(bench.root / "repaired").touch()
    done = bench.call("retry", "latest", "0", "--json")
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert bench.tree(done.data["head"]) == {**bench.tree("main"), "part0/x.txt": "half"}


def test_candidates_are_checked_each_in_a_workspace_of_its_own(bench: Workbench) -> None:
    """Side by side, on all files."""
    (bench.files / ".orchestrix").mkdir(exist_ok=True)
    (bench.files / ".orchestrix" / "config.toml").write_text(
        '[agents.one]\ncommand = ["sh", "-c", "echo one > part0/x.txt"]\n'
        '[agents.two]\ncommand = ["sh", "-c", "echo two > part0/x.txt"]\n'
    )
    step: dict[str, Any] = {
        "title": "Race",
        "candidates": ["one", "two"],
        "owns": ["part0/**"],
        "checks": ["grep two part0/x.txt && test -f part1/x.txt"],
    }
    done = bench.run(step, flags=(*SPARSE, "-j", "2"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert bench.tree(done.data["head"])["part0/x.txt"] == "two"
    assert {purpose for purpose, *_ in opened(bench)} >= {"attempt1", "attempt1.2", "check1.1", "check1.2"}


def test_a_replay_has_all_files(bench: Workbench) -> None:
    """Recorded edits may be of any path; the result is the same commit."""
    done = bench.run(shell("echo 1 > part0/x.txt", owns=["part0/**"]), flags=SPARSE)
    file = str(bench.root / "run.zip")
    assert bench.call("record", "latest", "--output", file).code == 0
    again = bench.call("run", str(bench.root / "plan.json"), "--replay", file, "--json", *SPARSE)
    assert again.code == 0, again.out
    assert bench.tree(again.data["head"]) == bench.tree(done.data["head"])
    assert opened(bench) == [("attempt1", "checkout", "recorded edits are laid over all files")]


def test_doctor_says_what_sparse_workspaces_would_hold(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are asked for or not."""
    rows = {row["name"]: row["message"] for row in bench.call("doctor", "--json").data["checks"]}
    assert rows["sparse"] == "`--workspace sparse` would check out what a step owns and 2 of 11 files"
    monkeypatch.setenv("ORCHESTRIX_WORKSPACE_KIND", "sparse")
    monkeypatch.setenv("ORCHESTRIX_WORKSPACE_SPARSE", "part1,part2/*.txt")
    rows = {row["name"]: row["message"] for row in bench.call("doctor", "--json").data["checks"]}
    assert rows["workspace"] == "sparse: asked for"
    assert rows["sparse"] == "`--workspace sparse` would check out what a step owns and 5 of 11 files"
