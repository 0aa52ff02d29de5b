"""A worktree isolates files, not git: what an agent plants is never executed by a call of the harness."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from harness.model.changes import Change, Kind, Workspace
from harness.model.ids import RefName, TaskId, integration_branch, work_branch
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

BRANCH = work_branch(RUN, TaskId("0"))


@pytest.fixture(params=["checkout", "overlay"])
def workspaces(request: pytest.FixtureRequest) -> str:
    """Every claim here holds for both kinds of workspace."""
    return request.param


@pytest.fixture
def alarm(tmp_path: Path) -> Path:
    """A program that leaves a trace when anything runs it."""
    script = tmp_path / "alarm"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/executed\ncat\n')
    script.chmod(0o755)
    return script


def plant(checkout: Checkout, workspace: Workspace, alarm: Path) -> None:
    """Everything that GIT.md names, in the workspace's git and in the user's."""
    hooks = checkout.root / ".git" / "hooks"
    names = "pre-commit post-commit post-checkout post-merge pre-merge-commit reference-transaction post-index-change"
    for name in names.split():
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(alarm)
    settings = {
        "core.fsmonitor": str(alarm),
        "core.hooksPath": str(hooks),
        "core.sshCommand": str(alarm),
        "core.pager": str(alarm),
        "core.editor": str(alarm),
        "core.alternateRefsCommand": str(alarm),
        "diff.external": str(alarm),
        "filter.evil.clean": str(alarm),
        "filter.evil.smudge": str(alarm),
        "filter.evil.process": str(alarm),
        "merge.evil.driver": f"{alarm} %A",
        "diff.evil.textconv": str(alarm),
        "diff.evil.command": str(alarm),
        "gpg.program": str(alarm),
        "commit.gpgSign": "true",
        "alias.merge-tree": f"!{alarm}",
    }
    for key, value in settings.items():
        for where in (workspace.path, checkout.root):
            checkout.git("-c", "core.fsmonitor=false", "config", key, value, cwd=where)
    (checkout.root / ".git" / "info" / "attributes").write_text("* filter=evil merge=evil diff=evil\n")
    (workspace.path / ".gitattributes").write_text("* filter=evil merge=evil diff=evil\n")


def nested_trap(checkout: Checkout, directory: Path, alarm: Path) -> None:
    """A repository whose own config runs a program as soon as git asks it for its status."""
    checkout.git("init", "--quiet", cwd=directory)
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "inner", cwd=directory)
    checkout.git("config", "core.fsmonitor", str(alarm), cwd=directory)


def test_nothing_planted_is_executed(checkout: Checkout, vcs: Repository, alarm: Path, tmp_path: Path) -> None:
    """Hooks, fsmonitor, filters, drivers, text conversion, aliases, nested repositories: through a whole life of a step."""
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{1:040x},sub")
    checkout.git("commit", "--quiet", "--message", "submodule")
    start = vcs.resolve("HEAD")
    vcs.seal_parent(RUN)
    workspace = vcs.open_workspace(RUN, "0", start, BRANCH)
    other = vcs.open_workspace(RUN, "1", start, None)
    plant(checkout, workspace, alarm)
    (workspace.path / "nested").mkdir()
    nested_trap(checkout, workspace.path / "nested", alarm)
    nested_trap(checkout, workspace.path / "sub", alarm)
    (workspace.path / "README.md").write_text("changed\n")
    (other.path / "README.md").write_text("also\n")
    mine, theirs = vcs.snapshot(workspace, "work", 1), vcs.snapshot(other, "work", 1)
    assert vcs.merge(mine.commit, theirs.commit, start).conflicts
    vcs.open_workspace(RUN, "2", mine.commit, work_branch(RUN, TaskId("2")))
    left = checkout.root / ".git" / f"{integration_branch(RUN)}.lock"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()  # of a killed git: the ref is then moved by git itself, which has a hook for that
    vcs.move_ref(integration_branch(RUN), mine.commit, None)
    assert b"changed" in vcs.diff(start, mine.commit)
    assert "core.hooksPath" not in str(vcs.parent_drift(RUN).changed)
    vcs.delete_ref(integration_branch(RUN), mine.commit)
    for name in ("0", "1", "2"):
        vcs.remove_workspace(RUN, name)
    fresh = Repository.discover(checkout.root, tmp_path / "state")
    fresh.resolve("main")
    fresh.open_workspace(RUN, "3", mine.commit, None)
    assert not (tmp_path / "executed").exists(), (tmp_path / "executed").read_text()


@pytest.mark.parametrize("kind", ["file", "directory", "link", "gone"])
def test_a_replaced_git_file_leads_nowhere(
    checkout: Checkout, vcs: Repository, alarm: Path, tmp_path: Path, kind: str
) -> None:
    """The snapshot is of the files, by the harness' own git dir, and says what happened."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    (workspace.path / ".git").unlink()
    trap = tmp_path / "trap"
    trap.mkdir()
    nested_trap(checkout, trap, alarm)
    if kind == "file":
        (workspace.path / ".git").write_text(f"gitdir: {trap}/.git\n")
    elif kind == "directory":
        shutil.move(trap / ".git", workspace.path / ".git")
    elif kind == "link":
        (workspace.path / ".git").symlink_to(trap / ".git")
    (workspace.path / "f").write_text("f")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (Change(Kind.ADDED, "f"),)
    assert len(taken.warnings) == 1
    assert ".git" in taken.warnings[0]
    vcs.remove_workspace(RUN, "0")
    assert not (tmp_path / "executed").exists()


def test_a_leaked_environment_redirects_nothing(
    checkout: Checkout, vcs: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIT_DIR and its kin in the caller's environment have no effect, in discovery neither."""
    checkout.git("init", "--quiet", str(tmp_path / "decoy"))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, str(tmp_path / "decoy" / ".git"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    found = Repository.discover(checkout.root, tmp_path / "state")
    workspace = found.open_workspace(RUN, "0", found.resolve("HEAD"), BRANCH)
    (workspace.path / "f").write_text("f")
    taken = found.snapshot(workspace, "work", 1)
    assert (found.root, taken.changes) == (checkout.root, (Change(Kind.ADDED, "f"),))
    assert found.fast_forward(RefName("refs/heads/main"), taken.commit) == workspace.start
    assert (checkout.root / "f").is_file()


def test_replace_refs_do_not_fake_history(checkout: Checkout, vcs: Repository) -> None:
    """A replaced commit is read as it was made, and the ref itself trips the wire."""
    start = vcs.resolve("HEAD")
    other = checkout.commit("other", **{"evil.txt": "evil"})
    checkout.git("reset", "--quiet", "--hard", start)
    vcs.seal_parent(RUN)
    checkout.git("replace", start, other)
    workspace = vcs.open_workspace(RUN, "0", start, BRANCH)
    assert not (workspace.path / "evil.txt").exists()
    assert vcs.parent_drift(RUN).tampered == (f"refs/replace/{start}: added",)


@pytest.mark.parametrize("trap", ["pipe", "link"])
def test_a_trap_in_the_place_of_the_work_branch_is_taken_away(checkout: Checkout, vcs: Repository, trap: str) -> None:
    """A pipe would block every reader of refs; a link would lead to the user's branch."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    place = vcs.common_dir / BRANCH
    place.unlink()
    os.mkfifo(place) if trap == "pipe" else place.symlink_to("../../../main")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.agent_commits == ()
    assert vcs.read_ref(BRANCH) is None
    again = vcs.open_workspace(RUN, "0", workspace.start, BRANCH)
    assert vcs.read_ref(BRANCH) == again.start


def fingerprint(root: Path) -> dict[str, str]:
    """Every byte of the user's files, index, HEAD, stash, config, hooks and refs; not the objects."""
    found = {}
    for top, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in ("objects", "orchestrix")]
        for name in files:
            path = Path(top) / name
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(root))] = f"{path.lstat().st_mode} {hashlib.sha256(content).hexdigest()}"
    return found


def test_the_users_checkout_is_byte_identical_after_everything(checkout: Checkout, vcs: Repository) -> None:
    """A dirty checkout with staged, unstaged, untracked and stashed work is not touched by a whole run."""
    checkout.write("src/app.py", "stashed\n")
    checkout.git("stash", "--quiet")
    checkout.write("src/app.py", "staged\n")
    checkout.git("add", "src/app.py")
    checkout.write("src/app.py", "unstaged\n")
    checkout.write("untracked", "x")
    before = fingerprint(checkout.root)
    start = vcs.resolve("HEAD")
    vcs.seal_parent(RUN)
    made = []
    for name in ("0", "1"):
        workspace = vcs.open_workspace(RUN, name, start, work_branch(RUN, TaskId(name)))
        vcs.prepare(RUN, name, ["untracked"], [])
        (workspace.path / f"new-{name}").write_text(name)
        made.append(vcs.snapshot(workspace, name, 1).commit)
        vcs.remove_workspace(RUN, name)
    merged = vcs.merge(made[0], made[1], start)
    assert merged.tree is not None
    head = vcs.commit(merged.tree, made, "merge", 1)
    vcs.move_ref(integration_branch(RUN), head, None)
    vcs.write_record(RUN, {"plan.yaml": b"x"}, 1)
    drift = vcs.parent_drift(RUN)
    assert (drift.tampered, drift.changed) == ((), ())
    for ref, at in (vcs.refs_under("refs/heads/orchestrix/") | vcs.refs_under("refs/orchestrix/")).items():
        vcs.delete_ref(ref, at)
    assert fingerprint(checkout.root) == before


@pytest.mark.parametrize("name", ["objects", "objects/info"])
def test_a_link_in_the_place_of_its_objects_leads_nowhere(vcs: Repository, tmp_path: Path, name: str) -> None:
    """Neither the rights nor the snapshot write where it leads."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    first = vcs.agent_rights(workspace)
    shutil.rmtree(workspace.admin / name)
    (tmp_path / "precious" / "info").mkdir(parents=True)
    (workspace.admin / name).symlink_to(tmp_path / "precious")
    assert vcs.agent_rights(workspace) == first
    assert vcs.snapshot(workspace, "work", 1).agent_commits == ()
    assert [path.name for path in (tmp_path / "precious").rglob("*")] == ["info"]
