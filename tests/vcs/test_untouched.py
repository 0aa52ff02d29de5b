"""The snapshot of a workspace in which nothing was done is its start point, whatever stood where the files come from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.model.ids import CommitId
from harness.vcs import overlay
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

NAMES = ["a", "b.txt", "tags", "d/x", "d/y.txt", "d/e/z", "sub", "d/sub", "d", "d/e", ".gitignore", ".gitattributes"]
RULES = {
    ".gitignore": ["tags\n", "*.txt\nd/e/\n"],
    ".gitattributes": ["*.txt text\n", "* text=auto eol=crlf\n", "* ident\n"],
}
CONTENTS = ["one\n", "two\r\nlines\r\n", "$Id: old$\n", ""]
Tree = Mapping[str, tuple[str, str]]


@pytest.fixture(params=["overlay", "checkout", "sparse"])
def workspaces(request: pytest.FixtureRequest) -> str:
    return request.param


@st.composite
def entry(draw: st.DrawFn, name: str) -> tuple[str, str]:
    """Mode, and content or the commit of a submodule."""
    if name in RULES:
        return "100644", draw(st.sampled_from(RULES[name]))
    mode = draw(st.sampled_from(["100644", "100755", "120000", "160000"]))
    if mode == "160000":
        return mode, f"{draw(st.integers(1, 3)):040x}"
    return mode, draw(st.sampled_from(["a", "nowhere"] if mode == "120000" else CONTENTS))


@st.composite
def tree(draw: st.DrawFn) -> Tree:
    """No name is a file and a directory at once."""
    found: dict[str, tuple[str, str]] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=8)):
        if not any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in found):
            found[name] = draw(entry(name))
    return found


@st.composite
def pair(draw: st.DrawFn) -> tuple[Tree, Tree]:
    """Two trees that have much in common: most pairs of real start points do."""
    first, second = draw(tree()), draw(tree())
    kept = draw(st.sets(st.sampled_from(NAMES)))
    mixed = {name: about for name, about in first.items() if name in kept}
    for name, about in second.items():
        if not any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in mixed):
            mixed.setdefault(name, about)
    return first, mixed


def committed(checkout: Checkout, files: Tree) -> CommitId:
    """A commit of exactly these entries, by git's plumbing: no attribute changes what is stored."""
    rows = []
    for name, (mode, content) in files.items():
        oid = content
        if mode != "160000":
            hashed = ["git", "hash-object", "-w", "--no-filters", "--stdin"]
            oid = subprocess.check_output(hashed, cwd=checkout.root, input=content.encode()).decode().strip()
        rows.append(f"{mode} {oid}\t{name}\0")
    env = {**os.environ, "GIT_INDEX_FILE": str(checkout.root / ".git" / "test-index")}
    subprocess.run(["git", "read-tree", "--empty"], cwd=checkout.root, env=env, check=True)
    stage = ["git", "update-index", "-z", "--index-info"]
    subprocess.run(stage, cwd=checkout.root, env=env, input="".join(rows).encode(), check=True)
    made = subprocess.check_output(["git", "write-tree"], cwd=checkout.root, env=env, text=True).strip()
    return CommitId(checkout.git("commit-tree", made, "-m", "tree"))


MOVED = (
    {"sub": ("160000", f"{1:040x}"), "a": ("100644", "a\n")},
    {"sub": ("160000", f"{2:040x}"), "a": ("100644", "a\n")},
)
DEEPER = ({"d/sub": ("160000", f"{1:040x}"), "d/x": ("100644", "x\n")}, {"d/sub": ("160000", f"{2:040x}")})
# Content that no `git add` would give: checked out, and read back as something else.
_ODD = {"b.txt": ("100644", "two\r\nlines\r\n"), ".gitattributes": ("100644", "*.txt text\n")}
_IDENT = {"a": ("100644", "$Id: old$\n"), ".gitattributes": ("100644", "* ident\n")}
UNCLEAN = (_ODD, {**_ODD, "b.txt": ("100755", "two\r\n"), "a": ("100644", "new\n")})
EXPANDED = (_IDENT, {**_IDENT, "tags": ("100644", "$Id: older$\n")})


@example(trees=MOVED)
@example(trees=DEEPER)
@example(trees=UNCLEAN)
@example(trees=EXPANDED)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees=pair())
def test_nothing_done_is_no_change(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], workspaces: str, trees: tuple[Tree, Tree]
) -> None:
    """At the first start point, beside it at the second, in a checkout that is used again, and after a crash."""
    vcs = open_vcs(checkout.root)
    first, second = (committed(checkout, files) for files in trees)
    only = ["d/**"] if workspaces == "sparse" else None
    for name, start in (("0", first), ("1", second), ("2", first)):
        workspace = vcs.open_workspace(RUN, name, start, None, only)
        assert vcs.snapshot(workspace, "nothing", 1).tree == vcs.tree_of(start), (name, trees)
    overlay.unmount(vcs._place(RUN, "1"))
    found = vcs.find_workspace(RUN, "1")
    assert found is not None
    assert vcs.snapshot(found, "nothing", 1).tree == vcs.tree_of(second)
    vcs.retire_workspace(RUN, "0")
    vcs.workspaces()  # waits for what is done in the background
    again = vcs.open_workspace(RUN, "3", second, None, only)
    assert vcs.snapshot(again, "nothing", 1).tree == vcs.tree_of(second)
    vcs.forget_run(RUN)
