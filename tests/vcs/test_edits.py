"""What a step changed is read exactly, and laid into a workspace so that the same tree comes out."""

from __future__ import annotations

import os

import pytest

from harness.errors import UsageError
from harness.model.changes import Edit
from harness.model.recording import RecordedEdit
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout


def _changed(checkout: Checkout) -> str:
    """A commit with every kind of change; the branch goes back to where it was."""
    (checkout.root / "README.md").unlink()
    (checkout.root / "README.md").symlink_to("src/lib.py")
    checkout.write("bin/tool", b"\x00\xff").chmod(0o755)
    (checkout.root / os.fsdecode(b'odd \xff\n"name')).write_text("odd\n")
    (checkout.root / "src" / "app.py").unlink()
    checkout.write("src/app.py/inner", "a directory now\n")
    made = checkout.commit("changes")
    checkout.git("reset", "--quiet", "--hard", "HEAD~1")
    return made


def test_edits_laid_into_a_workspace_give_the_same_tree(checkout: Checkout, vcs: Repository) -> None:
    """Links, modes, binaries, odd names and a file that becomes a directory, also when something stood in the way."""
    start = vcs.resolve("HEAD")
    end = vcs.resolve(_changed(checkout))
    workspace = vcs.open_workspace(RUN, "0-attempt1-1", start, None)
    (workspace.path / "bin").mkdir()
    (workspace.path / "bin" / "tool").write_text("left by a setup command\n")
    vcs.lay(workspace, vcs.tree_of(start), vcs.edits(start, end), vcs.tree_of(end), vcs.blob)
    assert vcs.snapshot(workspace, "again", 0).tree == vcs.tree_of(end)
    assert (workspace.path / "README.md").readlink().name == "lib.py"


def test_what_does_not_fit_is_refused(checkout: Checkout, vcs: Repository) -> None:
    """Another start, other contents, another end, and files in the workspace that the recording does not know."""
    start = vcs.resolve("HEAD")
    end = vcs.resolve(_changed(checkout))
    first, last, edits = vcs.tree_of(start), vcs.tree_of(end), vcs.edits(start, end)
    workspace = vcs.open_workspace(RUN, "0-attempt1-1", start, None)
    with pytest.raises(UsageError, match="this step begins with another one"):
        vcs.lay(workspace, last, edits, last, vcs.blob)
    with pytest.raises(UsageError, match="is something else"):
        vcs.lay(workspace, first, edits, last, lambda _blob: b"other")
    with pytest.raises(UsageError, match="its edits make tree"):
        vcs.lay(workspace, first, edits[1:], last, vcs.blob)
    (workspace.path / "stray").write_text("left by a setup command\n")
    with pytest.raises(UsageError, match="differs: stray"):
        vcs.lay(workspace, first, edits, last, vcs.blob)


def test_a_moved_submodule_cannot_be_told_in_edits(checkout: Checkout, vcs: Repository) -> None:
    """Its files are in no tree of this repository."""
    start = vcs.resolve("HEAD")
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{start},sub")
    checkout.git("commit", "--quiet", "--message", "submodule")
    with pytest.raises(UsageError, match="sub is a submodule"):
        vcs.edits(start, vcs.resolve("HEAD"))


def test_names_survive_json() -> None:
    """Any bytes come back as they were, and plain names stay readable."""
    for path in (b"src/a b.py", b'odd \xff\n"%41', "ünï".encode()):
        edit = Edit(path, "100644", "0" * 40)
        assert RecordedEdit.of(edit).edit == edit
    assert RecordedEdit.of(Edit(b"src/a b.py", None, None)).path == "src/a b.py"
