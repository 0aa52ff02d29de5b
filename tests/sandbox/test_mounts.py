"""Which mounts a program gets: as few as show the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness.model.process import ProcessSpec, Rights
from harness.sandbox import mounts


def _mounted(spec: ProcessSpec) -> dict[str, str]:
    words = mounts.options(spec)
    kinds = ("--bind", "--ro-bind")
    return {words[at + 2]: word for at, word in enumerate(words) if word in kinds}


def test_what_a_read_only_mount_shows_already_is_not_mounted_again(bench, tmp_path) -> None:
    """Only something else in between, writable or hidden, makes it a mount of its own."""
    shown, inner, granted = tmp_path / "shown", tmp_path / "shown/inner", tmp_path / "shown/granted"
    again, secret, seen = granted / "again", tmp_path / "shown/secret", tmp_path / "shown/secret/seen"
    for place in (inner, again, seen):
        place.mkdir(parents=True)
    rights = Rights(writable=(granted,), readable=(inner, again, seen, shown), hidden=(secret,))
    spec = bench.spec("true", env={}, rights=rights)
    assert _mounted(spec) == {
        str(bench.workspace): "--bind",
        str(shown): "--ro-bind",
        str(granted): "--bind",
        str(again): "--ro-bind",
        str(seen): "--ro-bind",
    }


def test_what_lies_below_no_mount_of_ours_needs_none(bench) -> None:
    """The root is there already, read-only."""
    assert _mounted(bench.spec("true", env={}, rights=Rights(readable=(Path("/usr"), Path("/nonexistent"))))) == {
        str(bench.workspace): "--bind"
    }


def test_a_path_that_has_become_a_link_is_looked_up_anew(bench, tmp_path) -> None:
    """Where it led for an earlier program does not count."""
    named, other = tmp_path / "named", tmp_path / "other"
    named.mkdir()
    other.mkdir()
    spec = bench.spec("true", env={}, rights=Rights(writable=(named,)))
    assert str(named) in _mounted(spec)
    named.rmdir()
    named.symlink_to(other)
    assert _mounted(spec) == {str(bench.workspace): "--bind", str(other): "--bind"}


def test_readable_below_writable_stays_unwritable_and_below_readable_stays_readable(bwrap, bench, tmp_path) -> None:
    """As the program itself sees it."""
    kept, deep = bench.workspace / "kept", tmp_path / "shown" / "deep"
    kept.mkdir()
    deep.mkdir(parents=True)
    (deep / "file").write_text("seen\n")
    rights = Rights(readable=(kept, deep, tmp_path / "shown"))
    command = f"touch kept/new 2>/dev/null || touch new && cat {deep}/file && ! touch {deep}/new 2>/dev/null"
    result = asyncio.run(
        bench.run(bwrap, bench.spec("sh", "-c", command, env={"PATH": "/usr/bin:/bin"}, rights=rights))
    )
    assert (result.exit_code, result.output_tail) == (0, "seen\n")
    assert sorted(entry.name for entry in bench.workspace.iterdir()) == ["kept", "new"]
    assert list(kept.iterdir()) == []
