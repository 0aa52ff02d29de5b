"""Discovery says what is wrong with an environment and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.parts import needs_root

from harness.errors import EnvironmentProblem, Exit, GitFailed, UsageError
from harness.model.ids import RefName
from harness.vcs import repo
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout


def refused(start: Path, state: Path) -> EnvironmentProblem:
    with pytest.raises(EnvironmentProblem) as caught:
        Repository.discover(start, state)
    assert caught.value.hint
    assert caught.value.exit_code == Exit.ENVIRONMENT
    return caught.value


def test_any_directory_of_the_checkout_leads_to_its_root(checkout: Checkout, tmp_path: Path) -> None:
    """Also through a link to it."""
    (tmp_path / "link").symlink_to(checkout.root / "src")
    for start in (checkout.root, checkout.root / "src", tmp_path / "link"):
        found = Repository.discover(start, tmp_path / "state")
        assert (found.root, found.git_dir, found.common_dir) == (
            checkout.root,
            checkout.root / ".git",
            checkout.root / ".git",
        )


def test_the_state_directory_is_readable_by_name_and_unique_by_place(checkout: Checkout, tmp_path: Path) -> None:
    """The default follows XDG; discovery itself writes nothing."""
    found = Repository.discover(checkout.root)
    assert found.state_dir.parent == tmp_path / "home" / ".state" / "orchestrix"
    assert found.state_dir.name.startswith("project-")
    assert not found.state_dir.exists()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        ([], "is not in a git repository"),
        (["init", "--quiet", "--bare"], "is a bare repository"),
        (["init", "--quiet", "--object-format=sha256"], "uses the sha256 object format"),
    ],
)
def test_unusable_repositories_are_named(checkout: Checkout, tmp_path: Path, prepare: list[str], message: str) -> None:
    """No repository, a bare one, an unsupported object format."""
    place = tmp_path / "place"
    place.mkdir()
    if prepare:
        checkout.git(*prepare, cwd=place)
    assert message in refused(place, tmp_path / "state").message


def test_a_git_dir_is_no_checkout(checkout: Checkout, tmp_path: Path) -> None:
    """Standing inside .git is told apart from standing nowhere."""
    assert "inside a git dir" in refused(checkout.root / ".git", tmp_path / "state").message


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """A start that does not exist is not git's fault."""
    assert "is not a directory" in refused(tmp_path / "nowhere", tmp_path / "state").message


def test_an_unknown_extension_is_named(checkout: Checkout, tmp_path: Path) -> None:
    """A repository of a newer kind than git or libgit2 can read is refused at the door."""
    checkout.git("config", "core.repositoryFormatVersion", "1")
    checkout.git("config", "extensions.noop-v1", "true")
    assert "cannot be opened" in refused(checkout.root, tmp_path / "state").message


def test_a_partial_clone_is_refused_before_there_is_a_run(checkout: Checkout, tmp_path: Path) -> None:
    """Objects that it lacks would be missing in the middle of a run; commands that only read still work."""
    checkout.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    checkout.git("clone", "--quiet", "--filter=blob:none", checkout.root.as_uri(), str(clone))
    for setting in (None, "remote.origin.promisor"):
        if setting:
            checkout.git("config", "--unset", setting, cwd=clone)
        vcs = Repository.discover(clone, tmp_path / "state")
        assert vcs.resolve("HEAD") == checkout.git("rev-parse", "HEAD")
        with pytest.raises(EnvironmentProblem, match="is a partial clone") as caught:
            vcs.check_supported()
        assert "without --filter" in caught.value.hint


def test_borrowed_objects_must_be_there(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """A store that another repository lends is fine, and named when it is gone."""
    clone = tmp_path / "borrower"
    checkout.git("clone", "--quiet", "--shared", str(checkout.root), str(clone))
    borrower = Repository.discover(clone, tmp_path / "state")
    borrower.check_supported()
    workspace = borrower.open_workspace(RUN, "0", borrower.resolve("HEAD"), None)
    assert checkout.git("log", "--format=%s", cwd=workspace.path) == "base"
    (clone / ".git/objects/info/alternates").write_text(f"# a comment\n{tmp_path}/gone\n")
    with pytest.raises(EnvironmentProblem, match=f"borrows objects from {tmp_path}/gone, which is no directory"):
        borrower.check_supported()


def test_odd_repositories_that_work(checkout: Checkout, tmp_path: Path) -> None:
    """Grafts, replacements, a sparse checkout, files elsewhere, settings of each worktree: a step sees the whole tree."""
    first = checkout.git("rev-parse", "HEAD")
    second = checkout.commit("second", **{"deep/f.txt": "f"})
    (checkout.root / ".git/info/grafts").write_text(f"{second}\n")
    checkout.git("replace", second, first)
    checkout.git("config", "core.repositoryformatversion", "1")
    checkout.git("config", "extensions.worktreeConfig", "true")
    checkout.git("sparse-checkout", "set", "nothing")
    (tmp_path / "files").mkdir()
    checkout.git("config", "core.worktree", str(tmp_path / "files"))
    vcs = Repository.discover(checkout.root, tmp_path / "state")
    vcs.check_supported()
    assert vcs.root == tmp_path / "files"
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    assert (workspace.path / "deep" / "f.txt").is_file()
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""
    assert checkout.git("log", "--format=%s", cwd=workspace.path) == "second\nbase"
    assert vcs.snapshot(workspace, "nothing", 1).changes == ()


def _break_global_config(checkout: Checkout, home: Path) -> None:
    (home / ".gitconfig").write_text("[broken\n")


def _break_config(checkout: Checkout, home: Path) -> None:
    with (checkout.root / ".git/config").open("a") as file:
        file.write("[broken\n")


def _break_value(checkout: Checkout, home: Path) -> None:
    checkout.git("config", "core.filemode", "maybe")


def _break_head(checkout: Checkout, home: Path) -> None:
    (checkout.root / ".git/HEAD").write_text("nonsense\n")


def _unknown_extension(checkout: Checkout, home: Path) -> None:
    checkout.git("config", "core.repositoryformatversion", "1")
    checkout.git("config", "extensions.fancy", "true")


def _lose(revision: str) -> Callable[[Checkout, Path], None]:
    def lose(checkout: Checkout, home: Path) -> None:
        oid = checkout.git("rev-parse", revision)
        (checkout.root / ".git/objects" / oid[:2] / oid[2:]).unlink()

    return lose


def _include_itself(checkout: Checkout, home: Path) -> None:
    (home / ".gitconfig").write_text("[include]\n\tpath = ~/.gitconfig\n")


def _damage_commit(checkout: Checkout, home: Path) -> None:
    oid = checkout.git("rev-parse", "HEAD")
    file = checkout.root / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    file.write_bytes(b"rubbish")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_break_global_config, r"git does not work here: fatal: bad config line 1 in file .*\.gitconfig"),
        (_include_itself, r"fatal: exceeded maximum include depth \(10\) while including .*\.gitconfig"),
        (_break_config, r"fatal: bad config line \d+ in file .git/config"),
        (_break_value, "fatal: bad boolean config value 'maybe' for 'core.filemode'"),
        (_break_head, r"does not take .*/\.git for a repository: fatal: not a git repository"),
        (_unknown_extension, "fatal: unknown repository extension found: fancy"),
        (_lose("HEAD"), "'HEAD' cannot be read: fatal: Not a valid object name"),
        (_lose("HEAD^{tree}"), "'HEAD' cannot be read: fatal: "),
        (_damage_commit, "'HEAD' cannot be read: error: inflate: data stream error .* fatal: "),
    ],
)
def test_when_git_fails_its_reason_is_told(
    checkout: Checkout, tmp_path: Path, damage: Callable[[Checkout, Path], None], reason: str
) -> None:
    """Never a guess such as 'names no commit': git's own line is in the message, and it is no usage error."""
    damage(checkout, tmp_path / "home")
    with pytest.raises(EnvironmentProblem, match=reason):
        Repository.discover(checkout.root, tmp_path / "state").resolve("HEAD")


def test_a_damaged_index_is_told_in_gits_words(checkout: Checkout, tmp_path: Path) -> None:
    """As soon as it is read."""
    (checkout.root / ".git/index").write_bytes(b"DIRCrubbish")
    with pytest.raises(GitFailed, match="index file smaller than expected"):
        Repository.discover(checkout.root, tmp_path / "state").tracked(".orchestrix")


def test_a_repository_of_somebody_else_is_refused_with_the_way_out(checkout: Checkout, tmp_path: Path) -> None:
    """The hint names safe.directory."""
    needs_root("only root can give files away")
    os.chown(checkout.root, 65534, 65534)
    os.chown(checkout.root / ".git", 65534, 65534)
    problem = refused(checkout.root, tmp_path / "state")
    assert "belongs to another user" in problem.message
    assert "safe.directory" in problem.hint


def test_a_missing_git_is_named(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git on PATH nothing works, and the message says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused(checkout.root, tmp_path / "state").message == "git is not installed"


@pytest.mark.parametrize("version", ["git version 2.37.9", "git version 1.8.3.1", "something else"])
def test_an_old_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """merge-tree --write-tree came with git 2.38."""
    fake = tmp_path / "git"
    fake.write_text(f"#!/bin/sh\necho '{version}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(EnvironmentProblem) as caught:
        repo.discover(tmp_path)
    assert caught.value.message == f"git is too old: {version}"
    assert caught.value.hint == "install git 2.38 or newer and put it on PATH"


def test_a_repository_without_a_commit_is_named_when_resolving(checkout: Checkout, tmp_path: Path) -> None:
    """Discovery is fine with it; a run needs a base."""
    (tmp_path / "empty").mkdir()
    checkout.git("init", "--quiet", "--initial-branch=main", cwd=tmp_path / "empty")
    vcs = Repository.discover(tmp_path / "empty", tmp_path / "state")
    assert vcs.head_branch() == "refs/heads/main"
    with pytest.raises(EnvironmentProblem, match="has no commit yet"):
        vcs.resolve("HEAD")


def test_revisions_resolve_as_git_resolves_them(checkout: Checkout, vcs: Repository) -> None:
    """Branches, tags, abbreviations and relative names; a tag object leads to its commit."""
    first = checkout.git("rev-parse", "HEAD")
    checkout.git("tag", "--annotate", "--message", "v1", "v1")
    second = checkout.commit("second")
    names = {"HEAD": second, "HEAD~1": first, "v1": first, "main": second, second[:10]: second, ":/base": first}
    assert {name: vcs.resolve(name) for name in names} == names


@pytest.mark.parametrize(
    "revision", ["nope", "", "--help", "--output=x", "HEAD:src", "HEAD..HEAD", "-n1", "a\nb", "@{u}"]
)
def test_what_names_no_commit_is_a_usage_error(vcs: Repository, tmp_path: Path, revision: str) -> None:
    """A value never becomes an option."""
    with pytest.raises(UsageError, match="names no commit"):
        vcs.resolve(revision)
    assert not (tmp_path / "x").exists()


def test_a_detached_head_is_no_branch(checkout: Checkout, vcs: Repository) -> None:
    """None stands for detached."""
    assert vcs.head_branch() == RefName("refs/heads/main")
    checkout.git("checkout", "--quiet", "--detach")
    assert vcs.head_branch() is None


@pytest.mark.parametrize("options", [(), ("--index-version=4",), ("--split-index",), ("--index-version=3",)])
def test_tracked_paths_are_those_of_the_index(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], options: tuple[str, ...]
) -> None:
    """Whatever kind of index it is, with the folder in it and without."""
    checkout.git("update-index", *options)
    vcs = open_vcs(checkout.root)
    assert vcs.tracked(".orchestrix") == frozenset()
    checkout.write(".orchestrix/one.md")
    checkout.write("other/.orchestrix/two.md")
    checkout.git("add", "other")
    assert vcs.tracked(".orchestrix") == frozenset()
    checkout.git("add", ".orchestrix")
    assert vcs.tracked(".orchestrix") == {".orchestrix/one.md"}
    checkout.git("update-index", *options)
    assert vcs.tracked(".orchestrix") == {".orchestrix/one.md"}
    (checkout.root / ".git" / "index").unlink()
    assert vcs.tracked(".orchestrix") == frozenset()


@pytest.mark.parametrize("before", range(-1, 13))
def test_a_name_is_found_wherever_the_index_is_cut(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """It is read in pieces, and a name may lie across two of them."""
    checkout.write(".orchestrix/one.md")
    checkout.git("add", ".orchestrix")
    index = checkout.root / ".git" / "index"
    monkeypatch.setattr(repo, "_PIECE", index.read_bytes().index(b".orchestrix") - 8 + before)
    layout = repo.discover(checkout.root)
    assert repo.may_track(layout, ".orchestrix")
    assert not repo.may_track(layout, ".orchestrax")
