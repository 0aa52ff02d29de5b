"""The tripwire tells tampering from a person at work, and the harness' own doing from both."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import NotFound
from harness.model.changes import ParentDrift
from harness.model.ids import RefName, RunId, TaskId, integration_branch, keep_ref, work_branch
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

QUIET = ParentDrift()


@pytest.fixture
def sealed(vcs: Repository) -> Repository:
    vcs.seal_parent(RUN)
    return vcs


def test_nothing_happened(sealed: Repository) -> None:
    """No change, no drift, also when asked twice."""
    assert (sealed.parent_drift(RUN), sealed.parent_drift(RUN)) == (QUIET, QUIET)


def test_an_unsealed_parent_cannot_be_judged(vcs: Repository) -> None:
    """Asking before sealing is an error, not an all-clear."""
    with pytest.raises(NotFound, match="was not sealed"):
        vcs.parent_drift(RUN)


def test_config_hooks_attributes_and_replacements_are_protected(
    checkout: Checkout, sealed: Repository, tmp_path: Path
) -> None:
    """Each planted file is named with what became of it; the next look starts from there."""
    checkout.git("config", "core.hooksPath", "evil")
    git_dir = checkout.root / ".git"
    for name in ("hooks/pre-commit", "info/attributes", "info/grafts", "objects/info/alternates", "config.worktree"):
        (git_dir / name).write_text("")
    (git_dir / "hooks" / "commit-msg.sample").unlink()
    (git_dir / "hooks" / "update.sample").chmod(0o700)
    (tmp_path / "home" / ".gitconfig").write_text("[alias]\n\tst = !evil\n")
    start = sealed.resolve("HEAD")
    checkout.git("update-ref", f"refs/replace/{start}", start)
    drift = sealed.parent_drift(RUN)
    assert drift.tampered == (
        f"{tmp_path}/home/.gitconfig: added",
        "config: changed",
        "config.worktree: added",
        "hooks/commit-msg.sample: removed",
        "hooks/pre-commit: added",
        "hooks/update.sample: changed",
        "info/attributes: added",
        "info/grafts: added",
        "objects/info/alternates: added",
        f"refs/replace/{start}: added",
    )
    assert drift.changed == ()
    assert sealed.parent_drift(RUN) == QUIET


def test_a_change_that_keeps_size_and_time_is_seen(checkout: Checkout, sealed: Repository) -> None:
    """Content decides."""
    config = checkout.root / ".git" / "config"
    before = config.stat()
    config.write_bytes(config.read_bytes().replace(b"bare = false", b"bare = FALSE"))
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert sealed.parent_drift(RUN).tampered == ("config: changed",)


def test_a_rewrite_of_the_same_content_is_no_change(checkout: Checkout, sealed: Repository) -> None:
    """Times alone prove nothing."""
    config = checkout.root / ".git" / "config"
    config.write_bytes(config.read_bytes())
    assert sealed.parent_drift(RUN) == QUIET


def test_included_config_and_hooks_elsewhere_are_protected(checkout: Checkout, tmp_path: Path) -> None:
    """What the user's config leads to is guarded like the config itself."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "more").write_text("[a]\n\tb = c\n")
    checkout.git("config", "include.path", str(tmp_path / "more"))
    checkout.git("config", "core.hooksPath", str(tmp_path / "hooks"))
    vcs = Repository.discover(checkout.root, tmp_path / "state")
    vcs.seal_parent(RUN)
    (tmp_path / "more").write_text("[a]\n\tb = d\n")
    (tmp_path / "hooks" / "pre-push").write_text("")
    assert vcs.parent_drift(RUN).tampered == (f"{tmp_path}/hooks/pre-push: added", f"{tmp_path}/more: changed")


def test_refs_of_the_run_are_protected_from_others_and_not_from_us(checkout: Checkout, sealed: Repository) -> None:
    """Our own moves are known; agents have branches of their own elsewhere; another run's refs are that run's affair."""
    start = sealed.resolve("HEAD")
    other = sealed.commit(sealed.tree_of(start), [start], "other", 1)
    ours, kept = integration_branch(RUN), keep_ref(RUN, TaskId("0"), "a1")
    sealed.move_ref(ours, start, None)
    sealed.move_ref(kept, start, None)
    sealed.write_record(RUN, {"a": b"b"}, 1)
    assert sealed.parent_drift(RUN) == QUIET
    checkout.git("update-ref", ours, other)
    checkout.git("update-ref", "-d", kept)
    checkout.git("update-ref", work_branch(RUN, TaskId("0")), other)
    checkout.git("update-ref", integration_branch(RunId("r2")), other)
    checkout.git("update-ref", keep_ref(RunId("r2"), TaskId("0"), "a1"), other)
    checkout.git("update-ref", "refs/orchestrix/strange", other)
    assert sealed.parent_drift(RUN) == ParentDrift(
        tampered=(
            f"{work_branch(RUN, TaskId('0'))}: added",
            "refs/heads/orchestrix/r1/integration: moved",
            f"{kept}: removed",
            "refs/orchestrix/strange: added",
        )
    )


def test_a_person_at_work_is_reported_not_blamed(checkout: Checkout, sealed: Repository) -> None:
    """Branches, tags, stash, HEAD, index and files: each is said once."""
    checkout.write("untracked", "x")
    checkout.write("src/app.py", "stashed\n")
    checkout.git("stash", "--quiet")
    checkout.git("tag", "v1")
    checkout.git("checkout", "--quiet", "-b", "topic")
    checkout.write("staged", "x")
    checkout.git("add", "staged")
    checkout.write("README.md", "edited\n")
    drift = sealed.parent_drift(RUN)
    assert drift == ParentDrift(
        changed=(
            "refs/heads/topic: added",
            "refs/stash: added",
            "refs/tags/v1: added",
            "HEAD: moved",
            "index: changed",
            "README.md: changed",
            "untracked: changed",
        )
    )
    checkout.write("untracked", "y")
    (checkout.root / "README.md").unlink()
    checkout.git("commit", "--quiet", "--message", "by a person")
    assert sealed.parent_drift(RUN).changed == ("refs/heads/topic: moved", "README.md: changed", "untracked: changed")


def test_what_is_not_a_change_of_the_parent(checkout: Checkout, vcs: Repository) -> None:
    """The harness' own files, ignored files and a refreshed index are no news."""
    checkout.commit("rules", **{".gitignore": "*.log\n"})
    vcs.seal_parent(RUN)
    for path in (".orchestrix/local/state.db", ".orchestrix/step-3-result.md", "x.log"):
        checkout.write(path, "x")
    os.utime(checkout.root / "README.md")
    checkout.git("status")
    assert vcs.parent_drift(RUN) == QUIET


def test_a_split_index_is_watched_like_any_other(checkout: Checkout, vcs: Repository) -> None:
    """Its two halves are read together."""
    checkout.git("config", "core.splitIndex", "true")
    checkout.git("update-index", "--split-index")
    vcs.seal_parent(RUN)
    checkout.write("README.md", "edited\n")
    checkout.write("staged", "x")
    checkout.git("add", "staged")
    assert vcs.parent_drift(RUN) == ParentDrift(changed=("index: changed", "README.md: changed"))


def test_landing_by_us_is_no_drift(sealed: Repository) -> None:
    """The branch and the files that landing moved are sealed anew."""
    start = sealed.resolve("HEAD")
    new = sealed.commit(sealed.with_file(sealed.tree_of(start), "new", b"x"), [start], "new", 1)
    assert sealed.fast_forward(RefName("refs/heads/main"), new) == start
    assert sealed.parent_drift(RUN) == QUIET


def test_two_runs_of_one_repository_do_not_accuse_each_other(checkout: Checkout, sealed: Repository) -> None:
    """A second coordinator's refs, worktrees and record are not drift of the first."""
    second = Repository.discover(checkout.root, sealed.state_dir.parent)
    run = RunId("r2")
    second.seal_parent(run)
    start = second.resolve("HEAD")
    for vcs, mine in ((sealed, RUN), (second, run)):
        vcs.open_workspace(mine, "0", start, work_branch(mine, TaskId("0")))
        vcs.move_ref(integration_branch(mine), start, None)
        vcs.write_record(mine, {"a": b"b"}, 1)
    assert (sealed.parent_drift(RUN), second.parent_drift(run)) == (QUIET, QUIET)


def test_our_own_moves_in_other_threads_are_never_blamed(sealed: Repository) -> None:
    """Refs move while the parent is being looked at."""
    start = sealed.resolve("HEAD")

    def busy(number: int) -> ParentDrift:
        sealed.move_ref(keep_ref(RUN, TaskId(str(number)), "a1"), start, None)
        return sealed.parent_drift(RUN)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(busy, range(24))) == {QUIET}
