"""A submodule that appears, moves or goes in a landing: what the user has in its directory is never lost."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import LandingRefused
from harness.model.ids import CommitId, RefName
from harness.vcs.repository import Repository
from tests.vcs.conftest import Checkout

MAIN = RefName("refs/heads/main")
FORMS = ["submodule", "submodule moved", "file", "link", "folder", "nothing"]
AWAY = [form for form in FORMS if not form.startswith("submodule")]


def committed(checkout: Checkout, form: str) -> CommitId:
    """A commit on top of main, whose `lib/sub` has this form."""
    checkout.git("rm", "-r", "-q", "--cached", "--ignore-unmatch", "lib")
    blob = checkout.git("rev-parse", "main:README.md")
    entry = {
        "submodule": f"160000,{'1' * 40},lib/sub",
        "submodule moved": f"160000,{'2' * 40},lib/sub",
        "file": f"100644,{blob},lib/sub",
        "link": f"120000,{blob},lib/sub",
        "folder": f"100644,{blob},lib/sub/inner",
    }.get(form)
    if entry:
        checkout.git("update-index", "--add", "--cacheinfo", entry)
    commit = checkout.git("commit-tree", "-p", "main", "-m", form, checkout.git("write-tree"))
    checkout.git("reset", "-q", "--hard", "main")
    return CommitId(commit)


def at(checkout: Checkout, form: str) -> CommitId:
    """Moves main, with files and index, to such a commit."""
    commit = committed(checkout, form)
    checkout.git("reset", "-q", "--hard", commit)
    if form == "nothing":
        shutil.rmtree(checkout.root / "lib", ignore_errors=True)
    return commit


def populated(checkout: Checkout) -> Path:
    """A repository in the submodule's directory, with a commit that nobody else has, an edit and a new file."""
    sub = checkout.root / "lib" / "sub"
    checkout.git("init", "-q", str(sub))
    checkout.write("lib/sub/code", "1\n")
    checkout.git("add", "code", cwd=sub)
    checkout.git("commit", "-q", "-m", "mine alone", cwd=sub)
    checkout.write("lib/sub/code", "edited\n")
    checkout.write("lib/sub/new", "untracked\n")
    return sub


def seen(checkout: Checkout) -> dict[str, object]:
    """Every file and directory, the index, and what git says of them."""
    found: dict[str, object] = {"refs": checkout.git("for-each-ref"), "index": checkout.git("ls-files", "-s", "-v")}
    found["status"] = checkout.git("status", "--porcelain", "--untracked-files=all")
    found["remains"] = [
        path for path in (checkout.root / ".git").iterdir() if "lock" in path.name or "-landing" in path.name
    ]
    for path in [path for path in checkout.root.rglob("*") if path.relative_to(checkout.root).parts[0] != ".git"]:
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = path.readlink() if path.is_symlink() else content
    return found


def refused(checkout: Checkout, act: Callable[[], object]) -> LandingRefused:
    before = seen(checkout)
    with pytest.raises(LandingRefused) as caught:
        act()
    assert seen(checkout) == before
    return caught.value


@pytest.mark.parametrize("form", ["file", "link", "folder"])
@pytest.mark.parametrize("clean", [False, True])
def test_a_populated_submodule_does_not_give_way(
    checkout: Checkout, vcs: Repository, form: str, *, clean: bool
) -> None:
    """To a file, a link, or a directory of files; also if git calls it clean: branches and ignored files are there, too."""
    at(checkout, "submodule")
    sub = populated(checkout)
    if clean:
        checkout.write("lib/sub/.git/info/exclude", "new\n")
        checkout.git("checkout", "-q", "code", cwd=sub)
        checkout.git("commit", "-q", "-a", "-m", "The submodule as it is")
        assert checkout.git("status", "--porcelain") == ""
    new = committed(checkout, form)
    problem = refused(checkout, lambda: vcs.fast_forward(MAIN, new))
    assert problem.details["paths"] == ["lib/sub"]
    assert problem.hint == "save what is in lib/sub, then empty it: `git submodule deinit lib/sub`; then land again"
    shutil.rmtree(sub)
    vcs.fast_forward(MAIN, new)
    assert checkout.git("status", "--porcelain") == ""


@pytest.mark.parametrize("there", ["empty", "missing"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "submodule"])
def test_a_submodule_without_content_stops_nothing(checkout: Checkout, vcs: Repository, form: str, there: str) -> None:
    """Nobody has initialised it: it gives way to whatever lands, and comes back."""
    old = at(checkout, "submodule")
    new = committed(checkout, form)
    if there == "missing":
        (checkout.root / "lib" / "sub").rmdir()
    vcs.fast_forward(MAIN, new)
    assert checkout.git("status", "--porcelain") == ""
    vcs.take_back(MAIN, new, old, "r1")
    assert checkout.git("status", "--porcelain") == ""
    assert list((checkout.root / "lib" / "sub").iterdir()) == []


@pytest.mark.parametrize("form", ["file", "link", "folder"])
def test_undo_does_not_remove_what_the_user_has_in_a_landed_submodule(
    checkout: Checkout, vcs: Repository, form: str
) -> None:
    """The landing made the submodule; by now it is initialised and edited."""
    old = at(checkout, form)
    new = committed(checkout, "submodule")
    vcs.fast_forward(MAIN, new)
    assert checkout.git("status", "--porcelain") == ""
    populated(checkout)
    problem = refused(checkout, lambda: vcs.take_back(MAIN, new, old, "r1"))
    assert problem.message == f"undo would overwrite lib/sub in {checkout.root}"
    assert problem.hint.endswith("then undo again")


@pytest.mark.parametrize("form", ["folder", "nothing"])
def test_files_of_the_user_do_not_end_up_in_a_submodule(checkout: Checkout, vcs: Repository, form: str) -> None:
    """Git would not show them any more. A repository that is there already may be the submodule itself."""
    at(checkout, form)
    new = committed(checkout, "submodule")
    checkout.write("lib/sub/mine", "untracked\n")
    assert refused(checkout, lambda: vcs.fast_forward(MAIN, new)).details["paths"] == ["lib/sub"]
    (checkout.root / "lib/sub/mine").unlink()
    populated(checkout)
    vcs.fast_forward(MAIN, new)
    assert (checkout.root / "lib/sub/code").read_text() == "edited\n"


@pytest.mark.parametrize("form", ["submodule moved", "file", "link", "folder", "nothing"])
def test_what_the_user_put_in_place_of_a_submodule_stays(checkout: Checkout, vcs: Repository, form: str) -> None:
    """A file there is a change of the user's. (A link there stops git itself.)"""
    at(checkout, "submodule")
    new = committed(checkout, form)
    sub = checkout.root / "lib" / "sub"
    sub.rmdir()
    sub.write_text("mine\n")
    assert refused(checkout, lambda: vcs.fast_forward(MAIN, new)).details["paths"] == ["lib/sub"]


def test_a_submodule_that_the_user_staged_is_not_to_be_emptied(checkout: Checkout, vcs: Repository) -> None:
    """The index is in the way, not the directory: the hint is that of files."""
    at(checkout, "submodule")
    new = committed(checkout, "submodule moved")
    populated(checkout)
    checkout.git("add", "lib/sub")
    problem = refused(checkout, lambda: vcs.fast_forward(MAIN, new))
    assert (problem.details["paths"], problem.hint.split()[0]) == (["lib/sub"], "commit,")


def test_a_directory_above_a_populated_submodule_does_not_give_way(checkout: Checkout, vcs: Repository) -> None:
    """`lib` becomes a file, and `lib/sub` is full."""
    at(checkout, "submodule")
    gone = committed(checkout, "nothing")
    checkout.git("reset", "-q", "--hard", gone)
    checkout.write("lib", "a file\n")
    new = CommitId(checkout.commit("lib is a file"))
    checkout.git("reset", "-q", "--hard", "main~2")
    populated(checkout)
    problem = refused(checkout, lambda: vcs.fast_forward(MAIN, new))
    assert problem.details["paths"] == ["lib"]
    assert "lib/sub" in problem.hint


def _killed(act: Callable[[], object], program: bytes) -> None:
    """Acts in a child that is killed as it starts this program of git's, or puts the new index into its place."""
    child = os.fork()
    if child == 0:

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            words = [os.fsencode(str(word)) for word in arguments[1]] if event == "subprocess.Popen" else []  # type: ignore[attr-defined]
            if program in words or (event == "os.rename" and program in os.fsencode(str(arguments[0]))):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            act()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


@pytest.mark.parametrize("moment", ["update-ref", "landing/index"])
@pytest.mark.parametrize(
    ("before", "after"),
    [("submodule", form) for form in FORMS[1:]] + [(form, "submodule") for form in AWAY],
)
def test_a_landing_that_dies_is_settled_whole(
    checkout: Checkout, vcs: Repository, before: str, after: str, moment: str
) -> None:
    """Before the branch moves it is taken back, after that it is finished: index and files fit in both cases."""
    at(checkout, before)
    new = committed(checkout, after)
    wanted = seen(checkout)
    _killed(lambda: vcs.fast_forward(MAIN, new), moment.encode())
    vcs.settle_landings()
    assert checkout.git("status", "--porcelain") == ""
    if moment == "update-ref":
        found = seen(checkout)
        assert {name: found[name] for name in wanted} == wanted
    assert vcs.read_ref(MAIN) == (new if moment == "landing/index" else checkout.git("rev-parse", "HEAD"))
    vcs.fast_forward(MAIN, new)
    assert checkout.git("status", "--porcelain") == ""
