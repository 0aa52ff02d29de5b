"""The snapshot holds exactly the files that the agent left."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import namespace
from harness.model.changes import Change, Kind, Workspace
from harness.model.ids import CommitId, TaskId, work_branch
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout, as_a_mere_user, recorded

BRANCH = work_branch(RUN, TaskId("0"))


@pytest.fixture(params=["checkout", "overlay"])
def workspaces(request: pytest.FixtureRequest) -> str:
    """Every claim here holds for both kinds of workspace."""
    return request.param


def opened(vcs: Repository) -> Workspace:
    return vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)


def tree_by_git(checkout: Checkout, workspace: Workspace, tmp_path: Path) -> str:
    """What `git add --all` gives for the same files in a repository of the user's own making."""
    twin = tmp_path / "twin"
    checkout.git("worktree", "add", "--quiet", "--detach", str(twin), workspace.start)
    for entry in twin.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.copytree(
        workspace.path,
        twin,
        symlinks=True,
        dirs_exist_ok=True,
        ignore=lambda top, _: [".git"] if top == str(workspace.path) else [],
    )
    checkout.git("add", "--all", cwd=twin)
    return checkout.git("write-tree", cwd=twin)


def zoo(root: Path) -> None:
    """Every kind of change at once."""
    (root / "src" / "app.py").write_text("print(2)\n")
    (root / "src" / "lib.py").unlink()
    (root / "src" / "moved.py").write_text("one\ntwo\nthree\n")
    (root / "README.md").chmod(0o755)
    (root / "empty").write_bytes(b"")
    (root / "binary").write_bytes(bytes(range(256)) * 10)
    (root / "dangling").symlink_to("nowhere")
    (root / "absolute").symlink_to("/etc/passwd")
    (root / "outside").symlink_to("../../..")
    (root / "looped").symlink_to("looped")
    (root / "file-to-dir").unlink()
    (root / "file-to-dir").mkdir()
    (root / "file-to-dir" / "x").write_text("x")
    shutil.rmtree(root / "dir-to-file")
    (root / "dir-to-file").write_text("file")
    shutil.rmtree(root / "dir-to-link")
    (root / "dir-to-link").symlink_to("src")
    (root / "link-to-file").unlink()
    (root / "link-to-file").write_text("file")
    (root / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (root / "x.log").write_text("ignored")
    (root / "keep.log").write_text("kept")
    (root / "build").mkdir()
    (root / "build" / "out").write_text("ignored")
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (root / "empty-directory").mkdir()
    for name in (
        b"new\nline",
        b"-dash",
        b'quo"te',
        b"trailing ",
        b"\xff\xfe",
        b":(top)magic",
        b"a*b[c]?",
        b"tab\t",
        "é".encode(),
        b"e\xcc\x81",
        b"back\\slash",
        b"!bang",
        b"#hash",
        b"~tilde",
        b" ",
    ):
        (root / os.fsdecode(name)).write_bytes(name)


def test_every_kind_of_change_arrives(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """Modified, deleted, renamed, mode-only, links, binary, type changes, odd names: the same tree as git's own add."""
    for path in ("file-to-dir", "dir-to-file/a", "dir-to-link/b", ".gitattributes"):
        checkout.write(path, "*.txt text\n")
    (checkout.root / "link-to-file").symlink_to("src/app.py")
    checkout.commit("more")
    workspace = opened(vcs)
    zoo(workspace.path)
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.tree == tree_by_git(checkout, workspace, tmp_path)
    assert checkout.content(taken.commit, "crlf.txt") == b"a\nb\n"
    assert Change(Kind.MODIFIED, "README.md") in taken.changes
    assert Change(Kind.MODIFIED, "link-to-file") in taken.changes
    assert Change(Kind.DELETED, "src/lib.py") in taken.changes
    assert Change(Kind.ADDED, "src/moved.py") in taken.changes
    assert Change(Kind.ADDED, "\\xff\\xfe") in taken.changes
    assert not {"x.log", "build/out"} & {change.path for change in taken.changes}
    assert [change.path for change in taken.changes] == sorted(change.path for change in taken.changes)
    assert (taken.warnings, taken.nested, taken.agent_commits) == ((), (), ())


def test_an_untouched_workspace_is_the_start_point(checkout: Checkout, vcs: Repository) -> None:
    """No change at all is no change in the tree."""
    workspace = opened(vcs)
    taken = vcs.snapshot(workspace, "nothing", 1)
    assert (taken.tree, taken.changes) == (vcs.tree_of(workspace.start), ())


def test_everything_deleted_is_an_empty_tree(checkout: Checkout, vcs: Repository) -> None:
    """An agent may delete every file, the .git file too."""
    workspace = opened(vcs)
    for entry in workspace.path.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    taken = vcs.snapshot(workspace, "gone", 1)
    assert checkout.files(taken.commit) == {}
    assert taken.warnings == ("the agent removed the workspace's .git file",)


def test_the_same_files_give_the_same_commit(checkout: Checkout, vcs: Repository) -> None:
    """Commit ids depend on content, message and clock alone."""
    workspace = opened(vcs)
    (workspace.path / "new").write_text("new")
    first = vcs.snapshot(workspace, "work", 7)
    again = vcs.open_workspace(RUN, "other", workspace.start, None)
    (again.path / "new").write_text("new")
    assert vcs.snapshot(again, "work", 7).commit == first.commit
    shown = checkout.git("log", "-1", "--format=%an %ae %at %cn %ct %P %B", first.commit)
    assert shown == f"Orchestrix orchestrix@localhost 7 Orchestrix 7 {workspace.start} work"


def test_what_the_agent_did_to_its_index_does_not_matter(checkout: Checkout, vcs: Repository) -> None:
    """Flags that hide changes, staged content and a broken index have no effect."""
    workspace = opened(vcs)
    checkout.git("update-index", "--assume-unchanged", "README.md", cwd=workspace.path)
    checkout.git("update-index", "--skip-worktree", "src/app.py", cwd=workspace.path)
    (workspace.path / "README.md").write_text("hidden?\n")
    (workspace.path / "src" / "app.py").write_text("hidden?\n")
    (workspace.path / "staged").write_text("first")
    checkout.git("add", "staged", cwd=workspace.path)
    (workspace.path / "staged").write_text("second")
    checkout.git("rm", "--cached", "--quiet", "src/lib.py", cwd=workspace.path)
    taken = vcs.snapshot(workspace, "work", 1)
    assert {change.path for change in taken.changes} == {"README.md", "src/app.py", "staged"}
    assert checkout.content(taken.commit, "staged") == b"second"
    (workspace.admin / "index").write_bytes(b"rubbish")
    assert vcs.snapshot(workspace, "work", 1).commit == taken.commit


def test_a_change_that_keeps_size_and_time_is_seen(checkout: Checkout, vcs: Repository) -> None:
    """Setting the time of a file back does not hide an edit."""
    workspace = opened(vcs)
    readme = workspace.path / "README.md"
    before = readme.stat()
    readme.write_text("HELLO\n")
    os.utime(readme, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert vcs.snapshot(workspace, "work", 1).changes == (Change(Kind.MODIFIED, "README.md"),)


def test_bookkeeping_is_left_out_even_where_it_is_tracked(checkout: Checkout, vcs: Repository) -> None:
    """Local state and reports are not the agent's work; a file of a similar name elsewhere is."""
    checkout.write(".orchestrix/step-0-result.md", "old report\n")
    checkout.write(".orchestrix/local/tracked", "old\n")
    checkout.commit("tracked bookkeeping")
    workspace = opened(vcs)
    own = workspace.path / ".orchestrix"
    (own / "step-0-result.md").write_text("new report\n")
    (own / "step-1-result.md").write_text("new report\n")
    (own / "local" / "tracked").unlink()
    (own / "local" / "state.db").write_text("db")
    (own / "plan.yaml").write_text("plan")
    (workspace.path / "docs" / ".orchestrix").mkdir(parents=True)
    (workspace.path / "docs" / ".orchestrix" / "step-1-result.md").write_text("mine")
    assert vcs.snapshot(workspace, "work", 1).changes == (
        Change(Kind.ADDED, ".orchestrix/plan.yaml"),
        Change(Kind.ADDED, "docs/.orchestrix/step-1-result.md"),
    )


@pytest.mark.parametrize("committed", [True, False])
def test_a_nested_repository_arrives_as_plain_files(checkout: Checkout, vcs: Repository, committed: bool) -> None:
    """Git would record a link without files, or refuse; here the files arrive, by both repositories' ignore rules."""
    checkout.write(".gitignore", "*.pyc\nvendor/\n")
    checkout.commit("rules")
    workspace = opened(vcs)
    for name in ("lib", "lib/deeper", "vendor/tool"):
        nested = workspace.path / name
        nested.mkdir(parents=True)
        checkout.git("init", "--quiet", cwd=nested)
        (nested / "code.py").write_text(name)
        (nested / "code.pyc").write_text("compiled")
    (workspace.path / "lib" / ".gitignore").write_text("*.tmp\n")
    (workspace.path / "lib" / "x.tmp").write_text("ignored")
    if committed:
        for name in ("lib/deeper", "lib"):
            checkout.git("add", "--all", cwd=workspace.path / name)
            checkout.git("commit", "--quiet", "--message", "inner", cwd=workspace.path / name)
    taken = vcs.snapshot(workspace, "work", 1)
    assert [change.path for change in taken.changes] == ["lib/.gitignore", "lib/code.py", "lib/deeper/code.py"]
    assert taken.nested == ("lib",)
    assert taken.warnings == ("lib is a repository of its own: its files are in the snapshot, its history is not",)


def test_a_repository_made_over_tracked_files_hides_nothing(checkout: Checkout, vcs: Repository) -> None:
    """`git init` in a tracked directory: edits, deletions and additions below it still arrive."""
    workspace = opened(vcs)
    checkout.git("init", "--quiet", cwd=workspace.path / "src")
    (workspace.path / "src" / "app.py").write_text("changed\n")
    (workspace.path / "src" / "lib.py").unlink()
    (workspace.path / "src" / "new.py").write_text("new\n")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (
        Change(Kind.MODIFIED, "src/app.py"),
        Change(Kind.DELETED, "src/lib.py"),
        Change(Kind.ADDED, "src/new.py"),
    )


def with_submodules(checkout: Checkout, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names, start=1):
        checkout.git("update-index", "--add", "--cacheinfo", f"160000,{number:040x},{name}")
    checkout.git("commit", "--quiet", "--message", "submodules")


def test_submodules_of_the_start_point(checkout: Checkout, vcs: Repository) -> None:
    """Untouched ones stay; removed ones go; plain files in one are files; one at a commit of its own is kept as files."""
    names = ("sub-same", "sub-gone", "sub-plain", "sub-file", "sub-moved", "sub-broken")
    with_submodules(checkout, names)
    workspace = opened(vcs)
    assert all((workspace.path / name).is_dir() for name in names)
    (workspace.path / "sub-gone").rmdir()
    (workspace.path / "sub-plain" / "f").write_text("f")
    (workspace.path / "sub-file").rmdir()
    (workspace.path / "sub-file").write_text("file")
    moved = workspace.path / "sub-moved"
    checkout.git("init", "--quiet", cwd=moved)
    (moved / "inner").write_text("inner")
    checkout.git("add", "inner", cwd=moved)
    checkout.git("commit", "--quiet", "--message", "inner", cwd=moved)
    inner = checkout.git("rev-parse", "HEAD", cwd=moved)
    checkout.git("init", "--quiet", cwd=workspace.path / "sub-broken")
    taken = vcs.snapshot(workspace, "work", 1)
    files = {path: entry for path, entry in checkout.files(taken.commit).items() if path.startswith("sub")}
    assert files == {
        "sub-same": f"160000 {1:040x}",
        "sub-plain/f": files["sub-plain/f"],
        "sub-file": files["sub-file"],
        "sub-moved/inner": files["sub-moved/inner"],
        "sub-broken": f"160000 {6:040x}",
    }
    assert taken.nested == ("sub-moved", "sub-plain")
    assert taken.refused == f"submodule sub-moved: commit {inner[:12]} is on no branch of its remote: push it first"


@pytest.mark.parametrize("how", ["add", "deeper", "ahead", "local", "elsewhere"])
def test_a_submodule_that_a_step_adds(checkout: Checkout, vcs: Repository, tmp_path: Path, how: str) -> None:
    """`.gitmodules` and a gitlink; a commit that the remote does not have, or another remote, is refused with the reason."""
    library = Checkout(tmp_path / "library")
    library.root.mkdir()
    library.git("init", "--quiet", "--initial-branch=main")
    older = library.commit("one", **{"lib.py": "1\n"})
    newer = library.commit("two", **{"lib.py": "2\n"})
    workspace = opened(vcs)
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "deps/lib")
    checkout.git(*add, cwd=workspace.path)
    place = workspace.path / "deps" / "lib"
    if how == "deeper":
        checkout.git("checkout", "--quiet", older, cwd=place)
    elif how == "ahead":
        checkout.git("commit", "--quiet", "--allow-empty", "--message", "mine", cwd=place)
    elif how == "local":
        shutil.rmtree(place)
        place.mkdir()
        checkout.git("init", "--quiet", cwd=place)
        checkout.git("remote", "add", "origin", str(library.root), cwd=place)
        (place / "lib.py").write_text("2\n")
        checkout.git("add", "--all", cwd=place)
        checkout.git("commit", "--quiet", "--message", "mine", cwd=place)
    elif how == "elsewhere":
        checkout.git("config", "--file", ".gitmodules", "submodule.deps/lib.url", "elsewhere", cwd=workspace.path)
    taken = vcs.snapshot(workspace, "work", 1)
    files = checkout.files(taken.commit)
    assert ".gitmodules" in files
    if how in ("add", "deeper"):
        assert files["deps/lib"] == f"160000 {newer if how == 'add' else older}"
        assert taken.refused == ""
    else:
        assert checkout.content(taken.commit, "deps/lib/lib.py") == b"2\n"
        assert taken.refused.startswith("submodule deps/lib: ")
        assert ("push it first" in taken.refused) == (how != "elsewhere")


def test_pipes_and_sockets_are_named_and_do_not_block(
    checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the place of a tracked file, and of files that git itself would open and wait for."""
    workspace = opened(vcs)
    (workspace.path / "README.md").unlink()
    (workspace.path / "d").mkdir()
    for name in ("README.md", ".gitignore", "d/.gitattributes", "pipe"):
        os.mkfifo(workspace.path / name)
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(workspace.path)  # a socket's path may be no longer than 107 bytes
        server.bind("sock")
        taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (Change(Kind.DELETED, "README.md"),)
    told = sorted(warning.split(" is no regular file")[0] for warning in taken.warnings)
    assert told == [".gitignore", "README.md", "d/.gitattributes", "pipe", "sock"]


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_nested_repository_whose_head_is_a_pipe_does_not_block(
    checkout: Checkout, vcs: Repository, tmp_path: Path, kind: str
) -> None:
    """Git would open it to see whether this is a repository, in a submodule's place too, and wait for ever."""
    with_submodules(checkout, ("sub",))
    workspace = opened(vcs)
    for name in ("src", "lib", "sub"):
        place = workspace.path / name if kind == "directory" else tmp_path / f"git-{name}"
        place.mkdir(exist_ok=True)
        checkout.git("init", "--quiet", cwd=place)
        (place / ".git" / "HEAD").unlink()
        os.mkfifo(place / ".git" / "HEAD")
        if kind == "file":
            (workspace.path / name).mkdir(exist_ok=True)
            (workspace.path / name / ".git").write_text(f"gitdir: {place}/.git\n")
        (workspace.path / name / "new.py").write_text("new")
    os.mkfifo(workspace.path / "src" / ".gitignore")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (
        Change(Kind.ADDED, "lib/new.py"),
        Change(Kind.ADDED, "src/new.py"),
        Change(Kind.DELETED, "sub"),
        Change(Kind.ADDED, "sub/new.py"),
    )


def test_files_without_read_permission_arrive(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's own permission bits are no place to hide work; the executable bit is kept."""
    with tempfile.TemporaryDirectory() as scratch:
        monkeypatch.setenv("HOME", scratch)
        monkeypatch.setenv("XDG_CONFIG_HOME", scratch)
        shutil.copytree(checkout.root, f"{scratch}/project")
        vcs = Repository.discover(Path(scratch) / "project", Path(scratch) / "state")
        workspace = opened(vcs)
        (workspace.path / "closed").mkdir()
        (workspace.path / "closed" / "inner").write_text("inner")
        (workspace.path / "secret").write_text("secret")
        (workspace.path / "tool").write_text("tool")
        (workspace.path / "tool").chmod(0o100)
        (workspace.path / "secret").chmod(0)
        (workspace.path / "closed").chmod(0)
        answer = as_a_mere_user(Path(scratch), lambda: _paths_and_removal(vcs, workspace))
    assert answer == "closed/inner\nsecret\ntool\nremoved: True"


def _paths_and_removal(vcs: Repository, workspace: Workspace) -> str:
    paths = [change.path for change in vcs.snapshot(workspace, "work", 1).changes]
    (workspace.path / "closed").chmod(0)
    (workspace.path / "src").chmod(0o500)
    vcs.remove_workspace(RUN, workspace.name)
    return "\n".join([*paths, f"removed: {not workspace.path.exists()}"])


def test_a_path_that_git_refuses_is_named(checkout: Checkout, vcs: Repository) -> None:
    """What cannot be in a tree is not silently dropped: it is kept under another name, and not to be merged."""
    workspace = opened(vcs)
    (workspace.path / "git~1").write_text("x")
    (workspace.path / "good").write_text("x")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (Change(Kind.ADDED, "good"), Change(Kind.ADDED, "refused-git~1"))
    assert taken.refused == "git~1: hasDotgit: contains '.git'"


def test_commits_of_the_agent_are_found(checkout: Checkout, vcs: Repository) -> None:
    """On its branch, on another branch of its own and detached: the tips are listed, the files decide."""
    workspace = opened(vcs)
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "own", cwd=workspace.path)
    on_branch = checkout.git("rev-parse", "HEAD", cwd=workspace.path)
    checkout.git("checkout", "--quiet", "-b", "elsewhere", cwd=workspace.path)
    (workspace.path / "f").write_text("f")
    checkout.git("add", "f", cwd=workspace.path)
    checkout.git("commit", "--quiet", "--message", "other", cwd=workspace.path)
    other = checkout.git("rev-parse", "HEAD", cwd=workspace.path)
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.agent_commits == (other, on_branch)
    assert taken.changes == (Change(Kind.ADDED, "f"),)
    checkout.git("checkout", "--quiet", "--detach", cwd=workspace.path)
    assert vcs.snapshot(workspace, "work", 1).agent_commits == (other, on_branch)


def commit_own(checkout: Checkout, workspace: Workspace, name: str = "own.txt") -> str:
    """One file, committed by the agent."""
    (workspace.path / name).write_text("own")
    checkout.git("add", name, cwd=workspace.path)
    checkout.git("commit", "--quiet", "--message", "own", cwd=workspace.path)
    return checkout.git("rev-parse", "HEAD", cwd=workspace.path)


def test_the_agents_commits_are_brought_over(checkout: Checkout, vcs: Repository) -> None:
    """Checked object by object; until then the user's repository has nothing of them, afterwards it has all."""
    workspace = opened(vcs)
    tip = commit_own(checkout, workspace)
    assert checkout.git("for-each-ref", "--format=%(objectname)", BRANCH) == workspace.start
    checkout.git("cat-file", "-e", tip, ok=(1, 128))
    taken = vcs.snapshot(workspace, "work", 1)
    assert (taken.agent_commits, taken.warnings) == ((tip,), ())
    vcs.remove_workspace(RUN, "0")
    assert checkout.git("fsck", "--strict", "--no-dangling") == ""
    assert checkout.content(tip, "own.txt") == b"own"


def test_commits_whose_objects_are_gone_are_named_and_the_files_kept(checkout: Checkout, vcs: Repository) -> None:
    """The user's refs never saw them, and the snapshot says that commits were lost."""
    workspace = opened(vcs)
    commit_own(checkout, workspace)
    for entry in (workspace.admin / "objects").iterdir():
        if len(entry.name) == 2:
            shutil.rmtree(entry)
    taken = vcs.snapshot(workspace, "work", 1)
    assert (taken.agent_commits, taken.changes) == ((), (Change(Kind.ADDED, "own.txt"),))
    assert taken.warnings[0].startswith("the agent's own commits are not kept: git pack-objects failed")
    assert vcs.read_ref(BRANCH) == workspace.start
    assert checkout.git("fsck", "--no-dangling") == ""


def test_every_ref_that_the_agent_made_is_brought_over(checkout: Checkout, vcs: Repository) -> None:
    """Branches, tags and stashes, packed or not; what it fetched and what it only looked at is not its work."""
    checkout.git("branch", "other")
    workspace = opened(vcs)

    def git(*args: str) -> str:
        return checkout.git(*args, cwd=workspace.path)

    first = commit_own(checkout, workspace, "1.txt")
    git("tag", "--annotate", "--message", "mine", "mine")
    git("checkout", "--quiet", "--orphan", "apart")
    apart = commit_own(checkout, workspace, "2.txt")
    stashed = []
    for number in ("3", "4"):
        (workspace.path / "2.txt").write_text(number)
        git("stash", "--quiet")
        stashed.append(git("rev-parse", "refs/stash"))
    git("update-ref", "refs/remotes/origin/fetched", commit_own(checkout, workspace, "5.txt"))
    git("reset", "--quiet", "--hard", "HEAD~1")
    git("pack-refs", "--all")
    git("checkout", "--quiet", "other")
    taken = vcs.snapshot(workspace, "work", 1)
    assert (set(taken.agent_commits), taken.warnings) == ({first, apart, *stashed}, ())
    vcs.remove_workspace(RUN, "0")
    assert checkout.git("fsck", "--strict", "--no-dangling") == ""
    assert checkout.content(stashed[0], "2.txt") == b"3"
    assert checkout.git("for-each-ref", "--format=%(refname)", "refs/tags", "refs/stash", "refs/remotes") == ""


def test_settings_that_depend_on_where_the_repository_is_hold_in_a_workspace(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], tmp_path: Path
) -> None:
    """`includeIf` names the user's repository, not ours; hooks that the user keeps elsewhere are not replaced."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "pre-commit").write_text("#!/bin/sh\necho elsewhere > .git-hooked\n")
    (tmp_path / "hooks" / "pre-commit").chmod(0o755)
    (tmp_path / "work.config").write_text("[user]\n\tname = Worker\n\temail = w@example.org\n[core]\n\teol = crlf\n")
    (tmp_path / "home" / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {tmp_path}/hooks\n"
        f'[includeIf "gitdir:{checkout.root}/"]\n\tpath = {tmp_path}/work.config\n'
    )
    workspace = opened(open_vcs(checkout.root))
    assert checkout.git("config", "core.eol", cwd=workspace.path) == "crlf"
    (workspace.path / "f").write_text("f")
    for args in (("add", "f"), ("commit", "--quiet", "--message", "own")):
        where = recorded(workspace.path)
        subprocess.run([*namespace.entry(where), "git", "-C", where, *args], check=True)
    assert checkout.git("log", "-1", "--format=%an %ae", cwd=workspace.path) == "Worker w@example.org"
    assert (workspace.path / ".git-hooked").is_file()


def test_traps_among_the_agents_objects_are_taken_away(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """A pipe would block git, a link or an alternate would bring over what the agent could not read itself."""
    secret = Checkout(tmp_path / "secret")
    secret.root.mkdir()
    secret.git("init", "--quiet")
    hidden = secret.commit("hidden", key="key")
    workspace = opened(vcs)
    objects = workspace.admin / "objects"
    own = commit_own(checkout, workspace)
    (objects / "ff").mkdir(exist_ok=True)
    os.mkfifo(objects / "ff" / ("f" * 38))
    (objects / "info" / "alternates").write_text(f"{secret.root}/.git/objects\n{vcs.common_dir}/objects\n")
    heads = workspace.admin / "refs" / "heads"
    (heads / "stolen").write_text(f"{hidden}\n")
    (heads / "blocked").write_text("f" * 40)
    (heads / "endless").symlink_to("/dev/zero")
    os.mkfifo(heads / "waits")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.agent_commits == (own,)
    assert [said.startswith("the agent's own commits are not kept: ") for said in taken.warnings] == [True, True]
    checkout.git("cat-file", "-e", hidden, ok=(1, 128))


def test_git_in_a_workspace_sees_what_it_saw_in_a_worktree(checkout: Checkout, vcs: Repository) -> None:
    """The user's branches, tags and remotes, settings and hooks; changes of these stay in the workspace."""
    checkout.git("tag", "v1")
    checkout.git("update-ref", "refs/remotes/origin/main", "HEAD")
    checkout.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    checkout.git("pack-refs", "--all")
    checkout.git("branch", "loose")
    checkout.git("config", "alias.hi", "!echo hello")
    checkout.git("config", "remote.origin.url", "https://example.org/x.git")
    (checkout.root / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\necho hooked > hooked\n")
    (checkout.root / ".git" / "hooks" / "pre-commit").chmod(0o755)
    (checkout.root / ".git" / "info" / "exclude").write_text("hooked\n")
    workspace = opened(vcs)

    def git(*args: str) -> str:
        return checkout.git(*args, cwd=workspace.path)

    assert git("for-each-ref", "--format=%(refname)").splitlines() == [
        "refs/heads/loose",
        "refs/heads/main",
        BRANCH,
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/tags/v1",
    ]
    assert (git("log", "--format=%s", "main"), git("describe", "--tags")) == ("base", "v1")
    assert (git("hi"), git("remote", "get-url", "origin")) == ("hello", "https://example.org/x.git")
    commit_own(checkout, workspace)
    assert ((workspace.path / "hooked").is_file(), git("status", "--porcelain")) == (True, "")
    assert git("diff", "--name-only", "main") == "own.txt"
    before = checkout.git("for-each-ref"), (checkout.root / ".git" / "config").read_text()
    git("config", "user.name", "Agent")
    git("branch", "--delete", "--force", "main", "loose")
    git("tag", "--delete", "v1")
    git("gc", "--quiet", "--prune=now")
    git("worktree", "add", "--quiet", "--detach", str(recorded(workspace.path).parent / "second"))
    assert (checkout.git("for-each-ref"), (checkout.root / ".git" / "config").read_text()) == before
    checkout.git("gc", "--quiet", "--prune=now")
    assert git("fsck", "--no-dangling") == ""


@pytest.mark.parametrize("head", [b"rubbish", b"ref: ../../escape\n", b"ref: refs/heads/../../x\n", b"0" * 40, b""])
def test_a_head_that_the_agent_broke_is_not_trusted(checkout: Checkout, vcs: Repository, head: bytes) -> None:
    """The snapshot does not depend on it."""
    workspace = opened(vcs)
    (workspace.admin / "HEAD").write_bytes(head)
    (workspace.path / "f").write_text("f")
    taken = vcs.snapshot(workspace, "work", 1)
    assert (taken.agent_commits, taken.changes) == ((), (Change(Kind.ADDED, "f"),))


def test_snapshots_work_where_the_user_converts_line_endings(
    checkout: Checkout, open_vcs: Callable[[Path], Repository]
) -> None:
    """With core.autocrlf the agent sees CRLF, and an untouched file is no change."""
    checkout.git("config", "core.autocrlf", "true")
    vcs = open_vcs(checkout.root)
    workspace = opened(vcs)
    assert (workspace.path / "README.md").read_bytes() == b"hello\r\n"
    os.utime(workspace.path / "README.md")
    (workspace.path / "new.txt").write_bytes(b"a\r\n")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (Change(Kind.ADDED, "new.txt"),)
    assert checkout.content(taken.commit, "new.txt") == b"a\n"


def test_the_users_own_excludes_apply(
    checkout: Checkout, tmp_path: Path, open_vcs: Callable[[Path], Repository]
) -> None:
    """info/exclude and the global excludes file decide what is untracked, as in the user's checkout."""
    (tmp_path / "ignore").write_text("*.global\n")
    checkout.git("config", "core.excludesFile", str(tmp_path / "ignore"))
    (checkout.root / ".git" / "info" / "exclude").write_text("*.local\n")
    vcs = open_vcs(checkout.root)
    workspace = opened(vcs)
    for name in ("a.global", "b.local", "c.txt"):
        (workspace.path / name).write_text("x")
    assert vcs.snapshot(workspace, "work", 1).changes == (Change(Kind.ADDED, "c.txt"),)


def test_very_many_new_files(checkout: Checkout, vcs: Repository) -> None:
    """Thousands of files are one snapshot."""
    workspace = opened(vcs)
    for number in range(3000):
        (workspace.path / f"n{number}").write_text(str(number))
    assert len(vcs.snapshot(workspace, "work", 1).changes) == 3000


def test_a_directory_deeper_than_a_path_may_be_is_named(checkout: Checkout, vcs: Repository) -> None:
    """What no program can open by path is reported, and can still be removed."""
    workspace = opened(vcs)
    subprocess.run(
        [
            "python3",
            "-c",
            "import os\nfor _ in range(60):\n os.mkdir('d'*100); os.chdir('d'*100)\nopen('f','w').close()",
        ],
        cwd=workspace.path,
        check=True,
    )
    (workspace.path / "good").write_text("x")
    taken = vcs.snapshot(workspace, "work", 1)
    assert Change(Kind.ADDED, "good") in taken.changes
    assert any("not in the snapshot" in warning for warning in taken.warnings)
    vcs.remove_workspace(RUN, "0")
    assert not workspace.path.exists()


def test_commit_ids_are_checked_by_type() -> None:
    """A snapshot is only ever made on a full commit id."""
    with pytest.raises(Exception, match="not a commit id"):
        CommitId("HEAD")
