"""Overlay, checkout or sparse: the same commits, and the event, the report and doctor say which it was and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.parts import MERE_USER
from support.workbench import ROOT, Workbench, shell

STEPS = (
    shell("echo 1 >> a.txt; mkdir new; echo n > new/n.txt; git rm -q README.md", owns=["a.txt", "new/**", "README.md"]),
    shell("cat a.txt > copy.txt; chmod +x a.txt", needs=[0], owns=["copy.txt", "a.txt"]),
    shell("mv src moved", needs=[0], owns=["src/**", "moved/**"], checks=["test -d moved"]),
)


def kinds(bench: Workbench) -> set[tuple[str, str]]:
    """Kind and reason of every workspace of the latest run."""
    made = [event["payload"] for event in bench.events() if event["type"] == "workspace.preparing"]
    return {(payload["workspace"], payload["why"]) for payload in made}


def test_all_kinds_give_the_same_commits(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits, new and renamed directories, deletions, needs and a gate: with a fixed clock even the ids are equal."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    heads = {}
    for kind in ("checkout", "overlay", "sparse"):
        done = bench.run(*STEPS, flags=("--workspace", kind, "--run-id", f"kind-{len(kind)}"))
        assert done.code == 0, done.out
        assert kinds(bench) - {("checkout", "checks may read any file")} == {(kind, "asked for")}
        report = bench.call("report", "latest", "--step", "0", "--json").data
        assert kind in str(report)
        heads[kind] = bench.git("rev-parse", f"{done.data['head']}^{{tree}}")
    assert heads["checkout"] == heads["overlay"] == heads["sparse"]


def test_new_attributes_change_what_the_step_owns_in_every_kind(bench: Workbench) -> None:
    """Files that the step did not touch are neither converted nor held against it."""
    (bench.files / ".git/info/attributes").write_text("* -text\n")
    bench.commit({f"{number}.id": "l\r\n$Id: x $\r\n" for number in range(100)})
    (bench.files / ".git/info/attributes").unlink()
    step = shell("echo '*.id text ident' > .gitattributes; echo z > z.txt", owns=[".gitattributes", "z.txt"])
    trees = set()
    for kind in ("checkout", "overlay", "sparse"):
        done = bench.run(step, flags=("--workspace", kind))
        assert (done.code, done.reasons) == (0, ["merged"]), done.out
        assert done.steps[0]["changed_paths"] == [".gitattributes", "z.txt"]
        trees.add(bench.git("rev-parse", f"{done.data['head']}^{{tree}}"))
    assert len(trees) == 1


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--keep",), "workspaces that are kept must be plain files for everybody"),
        (("--sandbox", "none"), "without a sandbox, a step could write to the checkout that all steps share"),
    ],
)
def test_a_checkout_is_chosen_where_an_overlay_would_be_wrong(
    bench: Workbench, flags: tuple[str, ...], why: str
) -> None:
    """People look into kept workspaces from outside; a step without a sandbox could reach what all share."""
    assert bench.run(shell("echo 1 > x.txt"), flags=flags).code == 0
    assert kinds(bench) == {("checkout", why)}


def test_doctor_says_which_kind(bench: Workbench) -> None:
    """Before a run, with the reason."""
    (row,) = [row for row in bench.call("doctor", "--json").data["checks"] if row["name"] == "workspace"]
    assert row["ok"]
    assert row["message"].startswith(("overlay: ", "checkout: "))


def test_files_of_a_failed_step_can_be_looked_at_when_the_mount_is_gone(bench: Workbench) -> None:
    """`restore` brings them back as a branch."""
    done = bench.run(shell("echo half > x.txt; exit 1"), flags=("--workspace", "overlay"))
    assert done.code == 1
    assert bench.call("restore", "latest").code == 0
    (branch,) = bench.git("for-each-ref", "--format=%(refname)", "refs/heads/orchestrix-restore/").split()
    assert bench.tree(branch)["x.txt"] == "half"


def test_overlays_and_the_sandbox_work_together_without_root(bench: Workbench) -> None:
    """The mount lies in the holder's user namespace, bubblewrap in one below it; git in the workspace agrees."""
    script = "echo new > new.txt; rm README.md; mv src moved; git add -A; git commit -qm mine; git status --porcelain"
    plan = bench.plan(shell(f'test -z "$({script})"', checks=["test -f moved/lib.py"]))
    command = [*MERE_USER, sys.executable, "-m", "harness", "run", str(plan), "--json", "--sandbox", "bwrap"]
    done = subprocess.run(
        command, cwd=bench.files, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert kinds(bench) == {("overlay", "overlays can be mounted here")}
    merged = bench.tree(json.loads(done.stdout)["data"]["head"])
    assert merged.keys() >= {"new.txt", "moved/lib.py"}
    assert merged.keys().isdisjoint({"README.md", "src/lib.py"})
