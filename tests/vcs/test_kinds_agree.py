"""Every kind of workspace gives the same tree when attributes change, and no untouched file is in the change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.parts import missing

from harness.model.changes import Snapshot
from harness.model.ids import RunId
from harness.vcs import overlay
from harness.vcs.kinds import Mode
from tests.vcs.conftest import Checkout, Visible

MANY = 40
ODD = b"l\r\n$Id: x $\r\n"
KINDS: tuple[Mode, ...] = ("checkout", "overlay", "sparse")
Edit = Callable[[Path], object]


def attributes(line: str) -> Edit:
    return lambda root: (root / ".gitattributes").write_text(line + "\n")


def rewritten(root: Path) -> None:
    """Another file with the bytes that were checked out, one written in place, and one that is only touched."""
    for name in ("d/0.id", "d/1.id"):
        content = (root / name).read_bytes()
        if name == "d/0.id":
            (root / name).unlink()
        (root / name).write_bytes(content)
    os.utime(root / "d/2.id")


def edited(root: Path) -> None:
    (root / "d/3.id").write_bytes(ODD + b"more\r\n")


def same_size(root: Path) -> None:
    (root / "d/4.id").write_bytes(b"m\r\n$Id: y $\r\n")


@pytest.fixture
def project(checkout: Checkout) -> Checkout:
    """Content that attributes would store otherwise and that is no UTF-16, and a plain file."""
    for number in range(MANY):
        checkout.write(f"d/{number}.id", ODD)
    checkout.write("d/plain.txt", "one\ntwo\n")
    checkout.commit("files")
    return checkout


def taken(project: Checkout, scratch: Path, kind: Mode, edits: tuple[Edit, ...]) -> Snapshot:
    vcs = Visible.discover(project.root, scratch / kind)
    if kind == "overlay" and overlay.why_not(vcs.state_dir):
        missing(overlay.why_not(vcs.state_dir))
    vcs.choose_workspaces(kind)
    run = RunId(f"run-{kind}")
    workspace = vcs.open_workspace(run, "0", vcs.resolve("HEAD"), None, ["d/**"] if kind == "sparse" else None)
    for edit in edits:
        edit(workspace.path)
    made = vcs.snapshot(workspace, "work", 1)
    vcs.forget_run(run)
    return made


def agreed(project: Checkout, scratch: Path, *edits: Edit) -> Snapshot:
    """The snapshot that all kinds take after the same edits."""
    found = {kind: taken(project, scratch, kind, edits) for kind in KINDS}
    shown = {kind: (made.refused, [change.path for change in made.changes]) for kind, made in found.items()}
    assert shown["overlay"] == shown["checkout"] == shown["sparse"]
    assert len({made.tree for made in found.values()}) == 1
    return found["checkout"]


RULES = [
    "*.id text ident",
    "*.id ident",
    "*.id text eol=crlf",
    "*.id text=auto eol=lf",
    "*.id working-tree-encoding=UTF-16LE",
]


@pytest.mark.parametrize("rule", RULES)
def test_new_attributes_change_no_untouched_file(project: Checkout, tmp_path: Path, rule: str) -> None:
    """Nor one that holds the same bytes again; also where the new rule cannot be applied to what is there."""
    made = agreed(project, tmp_path, attributes(rule), rewritten)
    assert ([change.path for change in made.changes], made.refused) == ([".gitattributes"], "")


@pytest.mark.parametrize("rule", RULES[:4])
def test_what_is_really_edited_is_stored_by_the_new_attributes(project: Checkout, tmp_path: Path, rule: str) -> None:
    """Longer, and of the same size in the same second."""
    made = agreed(project, tmp_path, attributes(rule), edited, same_size)
    assert [change.path for change in made.changes] == [".gitattributes", "d/3.id", "d/4.id"]
    stored = project.content(made.commit, "d/3.id"), project.content(made.commit, "d/4.id")
    assert (b"\r\n" not in stored[0], b"\r\n" not in stored[1]) == ("text" in rule and "auto" not in rule,) * 2
    assert (b"$Id$" in stored[0], b"$Id$" in stored[1]) == ("ident" in rule,) * 2


def test_an_edit_that_the_new_encoding_cannot_hold_is_refused(project: Checkout, tmp_path: Path) -> None:
    """It is named, and the untouched files beside it are no changes of the kept work."""
    made = agreed(project, tmp_path, attributes(RULES[4]), edited)
    assert "d/3.id" in made.refused
    assert [change.path for change in made.changes] == [".gitattributes", "d/3.id"]


@pytest.mark.parametrize("rule", ["* text eol=crlf", "*.txt working-tree-encoding=UTF-16LE", "* text"])
@pytest.mark.parametrize("edit", [lambda root: (root / ".gitattributes").unlink(), attributes("* -text"), edited])
def test_attributes_that_go_or_change_leave_what_they_wrote(
    project: Checkout, tmp_path: Path, rule: str, edit: Edit
) -> None:
    """A file is compared with what the start point's attributes made of it, not with what the new ones would."""
    project.write(".gitattributes", rule + "\n")
    project.git(
        "add", ".gitattributes"
    )  # the others stay what they are, also where the rule would store them otherwise
    project.git("commit", "--quiet", "--message", "rule")
    changed = ["d/3.id"] if edit is edited else [".gitattributes"]
    made = agreed(project, tmp_path, edit, rewritten)
    assert [change.path for change in made.changes] == changed


def test_a_folder_behind_a_link_is_no_untouched_folder(project: Checkout, tmp_path: Path) -> None:
    """Its files have the times that they had; they are elsewhere all the same."""

    def linked(root: Path) -> None:
        shutil.copytree(root / "d", root / "e", copy_function=shutil.move)
        shutil.rmtree(root / "d")
        (root / "d").symlink_to("e")

    made = agreed(project, tmp_path, attributes("*.id ident"), linked)
    assert {change.path.partition("/")[0] for change in made.changes} == {".gitattributes", "d", "e"}
    assert project.files(made.commit)["d"].startswith("120000")
