"""Tools that change files, and what they refuse."""

from __future__ import annotations

import os
import stat

import pytest

from harness.errors import ContractViolation, ToolFailed
from harness.model import limits


def test_files_are_written_edited_moved_read_and_deleted(desk) -> None:
    """The plain life of a file."""
    assert desk.call("write_file", path="a/b/c.txt", content="one\n") == "wrote 4 bytes to a/b/c.txt"
    assert desk.call("edit_file", path="a/b/c.txt", old="one", new="two") == "edited a/b/c.txt"
    assert desk.call("move_file", source="a/b/c.txt", target="d/e.txt") == "moved a/b/c.txt to d/e.txt"
    assert desk.call("read_file", path="d/e.txt") == "two\n"
    assert desk.files() == {"d/e.txt": "two\n"}
    assert desk.call("delete_file", path="d/e.txt") == "deleted d/e.txt"
    assert desk.files() == {}


def test_permissions_are_those_of_a_new_file_and_an_executable_stays_one(desk) -> None:
    """Replacing a script does not take its x bit, and asking for one sets it."""
    mask = os.umask(0)
    os.umask(mask)
    desk.call("write_file", path="plain", content="")
    desk.call("write_file", path="tool", content="", executable=True)
    desk.call("write_file", path="tool", content="#!/bin/sh\n")
    desk.call("edit_file", path="tool", old="sh", new="bash")
    modes = {name: stat.S_IMODE((desk.workspace / name).stat().st_mode) for name in ("plain", "tool")}
    assert modes == {"plain": 0o666 & ~mask, "tool": 0o777 & ~mask}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../outside",
        "a/../../outside",
        "a/..",
        "",
        ".",
        "./",
        ".git",
        ".git/config",
        ".GIT/config",
        "sub/.git/hooks/pre-commit",
        ".orchestrix/local/state.db",
        ".orchestrix/Local",
        "out/file",
        "absolute/file",
        "hooks/pre-commit",
        "up/file",
    ],
)
@pytest.mark.parametrize("tool", ["write_file", "delete_file", "read_file"])
def test_paths_that_lead_out_are_denied(desk, tmp_path, path, tool) -> None:
    """Absolute, climbing, linked, or git's own: nothing outside changes, and it is a denial, not a failure."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("kept")
    (desk.workspace / ".git").mkdir()
    (desk.workspace / "deep").mkdir()
    (desk.workspace / "out").symlink_to("../elsewhere")
    (desk.workspace / "absolute").symlink_to(tmp_path / "elsewhere")
    (desk.workspace / "hooks").symlink_to(".git")
    (desk.workspace / "up").symlink_to("deep/../../elsewhere")
    arguments = {"content": "x"} if tool == "write_file" else {}
    with pytest.raises((ContractViolation, ToolFailed)) as caught:
        desk.call(tool, path=path, **arguments)
    assert isinstance(caught.value, ContractViolation) or path == ""
    assert desk.told[0][2] is (path == "")
    assert (tmp_path / "elsewhere" / "file").read_text() == "kept"
    assert [entry.name for entry in (tmp_path / "elsewhere").iterdir()] == ["file"]
    assert list((desk.workspace / ".git").iterdir()) == []


def test_links_that_stay_inside_are_followed_in_the_middle(desk) -> None:
    """A repository may link its own directories, relatively or absolutely."""
    (desk.workspace / "real" / "deep").mkdir(parents=True)
    (desk.workspace / "link").symlink_to("real/../real")
    (desk.workspace / "full").symlink_to(desk.workspace / "real")
    desk.call("write_file", path="link/deep/a", content="1")
    desk.call("write_file", path="full/b", content="2")
    assert desk.files() == {"real/b": "2", "real/deep/a": "1"}


def test_a_link_at_the_end_is_replaced_not_followed(desk, tmp_path) -> None:
    """Writing through a link would write somewhere else."""
    outside = tmp_path / "outside"
    outside.write_text("kept")
    (desk.workspace / "link").symlink_to(outside)
    with pytest.raises(ContractViolation, match="leads out of the workspace"):
        desk.call("read_file", path="link")
    with pytest.raises(ToolFailed, match="is a symbolic link"):
        desk.call("edit_file", path="link", old="kept", new="x")
    desk.call("write_file", path="link", content="own")
    assert outside.read_text() == "kept"
    assert desk.files() == {"link": "own"}


def test_reading_follows_links_inside_and_stops_at_loops(desk) -> None:
    """A loop is a failure, not a hang."""
    (desk.workspace / "d").mkdir()
    (desk.workspace / "d" / "file").write_text("text")
    (desk.workspace / "link").symlink_to("d/file")
    (desk.workspace / "loop").symlink_to("loop")
    assert desk.call("read_file", path="link") == "text"
    with pytest.raises(ToolFailed, match="too many links"):
        desk.call("read_file", path="loop")


def test_odd_files_do_not_block_or_flood(desk) -> None:
    """A FIFO, a directory and a huge file are answered at once."""
    os.mkfifo(desk.workspace / "fifo")
    (desk.workspace / "dir").mkdir()
    (desk.workspace / "big").write_bytes(b"x" * (limits.TOOL_READ_BYTES + 5))
    with pytest.raises(ToolFailed, match="not a regular file"):
        desk.call("read_file", path="fifo")
    with pytest.raises(ToolFailed, match="Is a directory"):
        desk.call("read_file", path="dir")
    with pytest.raises(ToolFailed, match="is a directory"):
        desk.call("write_file", path="dir", content="")
    with pytest.raises(ToolFailed, match="Is a directory"):
        desk.call("delete_file", path="dir")
    assert desk.call("read_file", path="big").endswith(f"x\n[... cut after {limits.TOOL_READ_BYTES} bytes ...]")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("edit_file", {"path": "a", "old": "zz", "new": ""}, "the text to replace is not in a"),
        ("edit_file", {"path": "a", "old": "aa", "new": ""}, "the text to replace is in a more than once"),
        ("edit_file", {"path": "none", "old": "aa", "new": ""}, "'none': No such file or directory"),
        ("delete_file", {"path": "none"}, "'none': No such file or directory"),
        ("move_file", {"source": "none", "target": "b"}, "none does not exist"),
        ("move_file", {"source": "a", "target": "a2"}, "a2 exists already"),
        ("write_file", {"path": "a/b", "content": ""}, "'a/b': Not a directory"),
        ("write_file", {"path": "b", "content": "\ud800"}, "write_file: content: Input should be a valid string"),
        ("write_file", {"path": "n" * 300, "content": ""}, f"'{'n' * 199}: File name too long"),
    ],
)
def test_failures_say_what_and_change_nothing(desk, tool, arguments, message) -> None:
    """An edit is exact and unique, or it does not happen; no temporary file stays."""
    (desk.workspace / "a").write_text("aaa\n")
    (desk.workspace / "a2").write_text("")
    with pytest.raises(ToolFailed) as caught:
        desk.call(tool, **arguments)
    assert caught.value.message.startswith(message)
    assert desk.files() == {"a": "aaa\n", "a2": ""}
