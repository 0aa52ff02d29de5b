"""The parent repository: what no sandbox protects is watched; what the person does there is the person's right."""

from __future__ import annotations

import pytest
from support.checker import check, fingerprint
from support.workbench import Workbench, shell, write

MARK = "touch {parent}/../executed"
PLANTED = {
    "config": "git -C $PARENT config core.hooksPath x",
    "fsmonitor": f"git -C $PARENT config core.fsmonitor '{MARK}'",
    "hook": f"printf '#!/bin/sh\\n{MARK}\\n' > $PARENT/.git/hooks/post-merge; chmod +x $PARENT/.git/hooks/post-merge;"
    " for n in reference-transaction post-checkout pre-commit post-commit; do"
    " cp $PARENT/.git/hooks/post-merge $PARENT/.git/hooks/$n; done",
    "filter": f"git -C $PARENT config filter.f.clean '{MARK}; cat'; git -C $PARENT config filter.f.smudge '{MARK}; cat';"
    " mkdir -p $PARENT/.git/info; echo '* filter=f' > $PARENT/.git/info/attributes",
    "merge driver": f"git -C $PARENT config merge.m.driver '{MARK}'; mkdir -p $PARENT/.git/info;"
    " echo '* merge=m' > $PARENT/.git/info/attributes",
    "textconv": f"git -C $PARENT config diff.d.textconv '{MARK}'; git -C $PARENT config diff.external '{MARK}';"
    " mkdir -p $PARENT/.git/info; echo '* diff=d' > $PARENT/.git/info/attributes",
    "user config": f"git config --global core.fsmonitor '{MARK}'; git config --global core.sshCommand '{MARK}'",
    "the run's own ref": 'git -C $PARENT update-ref "refs/heads/orchestrix/$ORCHESTRIX_RUN_ID/integration" '
    "$(git -C $PARENT commit-tree HEAD^{tree} -p HEAD -m forged)",
    "a replaced object": "git -C $PARENT replace HEAD $(git -C $PARENT commit-tree HEAD^{tree} -m forged)",
    "alternates": "mkdir -p $PARENT/.git/objects/info; echo /tmp > $PARENT/.git/objects/info/alternates",
}
WHO = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; "


@pytest.mark.parametrize("name", PLANTED)
def test_tampering_fails_the_step_and_nothing_planted_is_executed(bench: Workbench, name: str) -> None:
    """Exit 5 with what changed; nothing of the step is merged; its work is kept; later commands execute nothing."""
    script = WHO + PLANTED[name].replace("{parent}", str(bench.files)) + "; echo 1 > x.txt"
    done = bench.run(
        shell(script, env={"PARENT": str(bench.files)}, retries=2, checks=["true"]), flags=("--sandbox", "none")
    )
    assert (done.code, done.reasons) == (5, ["parent_tampered"]), done.out
    assert done.steps[0]["attempts"] == 1
    assert done.data["head"] == done.data["base"]
    assert bench.git("rev-parse", done.data["integration_ref"]) == done.data["base"]
    assert bench.tree(done.steps[0]["kept_ref"])["x.txt"] == "1"
    tampered = [event["payload"] for event in bench.events() if event["type"] == "parent_tampered"]
    assert tampered[0]["during"] == ["0"]
    assert tampered[0]["what"]
    for args in (("restore", "latest"), ("clean",), ("doctor",)):
        bench.call(*args)
    assert not (bench.root / "executed").exists()


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_what_git_changes_in_a_workspace_stays_there(bench: Workbench, sandbox: str) -> None:
    """Settings, branches, tags, stashes, replacements and submodules of the agent are in its own git dir alone."""
    before = fingerprint(bench.files)
    script = (
        f"{WHO} set -e; git config core.hooksPath x; git branch mine; git tag mine; git branch -f main HEAD; echo 1 > a.txt;"
        " git stash -q; git replace HEAD $(git commit-tree HEAD^{tree} -m forged); git remote add up /nowhere;"
        " git worktree add -q --detach $TMPDIR/second; git gc -q; git commit -q --allow-empty -m own; echo 1 > x.txt"
    )
    done = bench.run(shell(script, env={"TMPDIR": str(bench.root)}), flags=("--sandbox", sandbox))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert fingerprint(bench.files) == before
    assert [event for event in bench.events() if event["type"] in ("parent_tampered", "parent_changed")] == []


def test_a_run_after_a_planted_hook_still_executes_nothing(bench: Workbench) -> None:
    """Every git call of a whole run, landing included, with hostile hooks, config and attributes in place."""
    mark = MARK.format(parent=bench.files)
    for hook in (
        "post-merge",
        "reference-transaction",
        "post-checkout",
        "post-commit",
        "post-index-change",
        "pre-merge-commit",
    ):
        path = bench.files / ".git/hooks" / hook
        path.write_text(f"#!/bin/sh\n{mark}\n")
        path.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "core.askPass", "merge.m.driver", "diff.d.textconv"):
        bench.git("config", key, mark)
    (bench.files / ".git/info/attributes").write_text("* merge=m diff=d\n")
    done = bench.run(
        shell("sed -i s/one/1/ a.txt", owns=["a.txt"]),
        shell("sed -i s/three/3/ a.txt", owns=["a.txt"]),
        overlap="allow",
        flags=("--land", "--sandbox", "none"),
    )
    assert done.code in (0, 4), done.out
    bench.process("diff", "latest").communicate()
    assert not (bench.root / "executed").exists()


def test_a_change_of_the_checkout_is_reported_and_strictly_a_failure(bench: Workbench) -> None:
    """Moving main and writing into the checkout: an event and a line in the report; exit 5 with --strict-parent."""
    script = (
        WHO + "echo by the agent > $PARENT/stray.txt;"
        " git -C $PARENT update-ref refs/heads/main $(git -C $PARENT commit-tree HEAD^{tree} -p HEAD -m forged); echo 1 > x.txt"
    )
    lenient = bench.run(shell(script, env={"PARENT": str(bench.files)}), flags=("--sandbox", "none"))
    assert (lenient.code, lenient.reasons) == (0, ["merged"]), lenient.out
    changed = [event["payload"] for event in bench.events() if event["type"] == "parent_changed"]
    seen = " ".join(what for fact in changed for what in fact["what"])
    assert "refs/heads/main" in seen
    assert "stray.txt" in seen
    assert "stray.txt" in bench.call("report", "latest", "--step", "0").out
    strict = bench.run(
        shell(script.replace("stray", "other"), env={"PARENT": str(bench.files)}),
        flags=("--sandbox", "none", "--strict-parent"),
    )
    assert (strict.code, strict.reasons) == (5, ["parent_changed"]), strict.out
    assert "other.txt" in strict.steps[0]["message"]
    assert strict.steps[0]["kept_ref"]


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_person_who_works_in_the_checkout_is_not_disturbed(bench: Workbench, sandbox: str) -> None:
    """Edits, stages and commits during the run: all kept, the run succeeds, `land` refuses and overwrites nothing."""
    gate = bench.root / "gate"
    plan = bench.plan(shell(f"while ! test -e {gate}; do sleep 0.05; done; echo agent > a.txt", owns=["a.txt"]))
    running = bench.process("run", str(plan), "--json", "--sandbox", sandbox)
    while not bench.git("for-each-ref", "refs/heads/orchestrix/**/work"):
        assert running.poll() is None
    bench.commit({"a.txt": "by the person\n", "mine.txt": "mine\n"}, "By hand")
    (bench.files / "README.md").write_text("half-done\n")
    (bench.files / "new.txt").write_text("new\n")
    bench.git("add", "README.md")
    before = fingerprint(bench.files)
    gate.touch()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, out + err
    refused = bench.call("land", "latest", "--json")
    assert refused.code == 4
    assert refused.envelope["error"]["code"] == "landing_refused"
    assert check(bench.files, before=before) == []
    assert bench.tree("HEAD")["a.txt"] == "by the person"


def test_no_sandbox_is_said_loudly(bench: Workbench) -> None:
    """On stderr, whatever stdout carries; with a sandbox nothing is said."""
    step = write("x.txt", "x\n")
    assert "no sandbox" in bench.run(step, flags=("--sandbox", "none")).err
    assert "no sandbox" not in bench.run(step, flags=("--sandbox", "bwrap")).err
    started = next(event for event in bench.events() if event["type"] == "agent.subagent_attempt")
    assert started["payload"]["sandbox"] == "bwrap"
