"""Every file that a user hands in is a regular one of a bounded size; anything else is one sentence at once, never a wait."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.workbench import Workbench, write

from harness.model import limits


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\n"})
    made.plan(write("x.txt", "1\n"))
    return made


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def endless(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def huge(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(1 << 42)
    return path


_KINDS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "pipe": (pipe, "is not a regular file"),
    "device": (endless, "is not a regular file"),
    "folder": (folder, "is a directory"),
    "huge": (huge, "is larger than"),
    "missing": (lambda path: path, ""),
    "nul": (lambda path: path.with_name("a\0b"), "NUL"),
    "below a file": (lambda path: path.parent / "plan.json" / "x", "Not a directory"),
}
_INPUTS: dict[str, Callable[[str, str], tuple[str, ...]]] = {
    "plan": lambda file, _plan: ("run", file),
    "validate": lambda file, _plan: ("validate", file),
    "graph": lambda file, _plan: ("graph", file),
    "ci": lambda file, _plan: ("ci", file, "--json"),
    "recording": lambda file, plan: ("run", plan, "--replay", file),
    "checkpoint": lambda file, _plan: ("resume", "--from-checkpoint", file),
    "context": lambda file, _plan: ("plan", "a goal", "--context", file),
}


@pytest.mark.parametrize("given", _INPUTS)
@pytest.mark.parametrize("kind", _KINDS)
def test_what_is_no_regular_file_of_a_bounded_size_is_refused_at_once(bench: Workbench, kind: str, given: str) -> None:
    """Exit 2 and one line; no run is made of it."""
    make, why = _KINDS[kind]
    answer = bench.call(*_INPUTS[given](str(make(bench.root / "given")), str(bench.root / "plan.json")))
    assert answer.code == 2, answer
    said = (answer.err or answer.out).splitlines()
    assert len(said) == 1, said
    assert why in said[0], said
    assert bench.git("for-each-ref", "refs/heads/orchestrix") == ""


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_settings_that_are_no_regular_file_are_refused_at_once(bench: Workbench, hermetic: Path, kind: str) -> None:
    """The project's, the user's and an agent's profile: exit 3 and one line."""
    make, why = _KINDS[kind]
    for place in (bench.files / ".orchestrix/config.toml", hermetic / "config/orchestrix/config.toml"):
        place.parent.mkdir(parents=True, exist_ok=True)
        made = make(place)
        answer = bench.call("run", str(bench.root / "plan.json"))
        assert (answer.code, why in answer.err, len(answer.err.splitlines())) == (3, True, 1), answer
        made.rmdir() if kind == "folder" else made.unlink()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_a_plan_that_turned_into_something_else_does_not_stop_a_resume(bench: Workbench, kind: str) -> None:
    """The log has the plan: what stands at its path by now is not waited for. A run from stdin has no such file."""
    plan = bench.root / "plan.json"
    assert bench.call("run", str(plan), "--run-id", "r1").code == 0
    bench.git("update-ref", "-d", "refs/orchestrix/runs/r1")
    plan.unlink()
    _KINDS[kind][0](plan)
    assert bench.call("resume", "r1").code == 0


def test_a_damaged_recording_is_told_in_one_line(bench: Workbench, tmp_path: Path) -> None:
    """Cut short, changed at any place, encrypted or packed in an unknown way: exit 2 or a recording that still fits."""
    plan = str(bench.root / "plan.json")
    assert bench.call("run", plan, "--run-id", "r1").code == 0
    whole = tmp_path / "whole.zip"
    assert bench.call("record", "r1", "-o", str(whole)).code == 0
    data = whole.read_bytes()
    damaged = [data[:size] for size in range(0, len(data), 97)]
    damaged += [data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in range(0, len(data), 41)]
    for number, content in enumerate(damaged):
        path = tmp_path / f"damaged-{number}.zip"
        path.write_bytes(content)
        answer = bench.call("run", plan, "--replay", str(path), "--dry-run")
        assert answer.code in (0, 2), (number, answer)
        assert len(answer.err.splitlines()) == (answer.code == 2), answer


def test_a_checkpoint_of_anything_else_is_told_in_one_line(bench: Workbench, tmp_path: Path) -> None:
    """No JSON, too deep, no object, bytes that are no text."""
    for content in (b"", b"[" * 200_000, b"{}", b"[]", b"1", b"\xff\xfe", b'{"schema_version": 99}', b"null"):
        path = tmp_path / "checkpoint.json"
        path.write_bytes(content)
        answer = bench.call("resume", "--from-checkpoint", str(path))
        assert (answer.code, len(answer.err.splitlines())) == (2, 1), (content[:20], answer)


def test_a_recording_that_unpacks_to_more_than_the_limit_is_refused(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would become is counted, not what it is."""
    monkeypatch.setattr(limits, "RECORDING_BYTES", 100_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("recording.json", bytes(1_000_000))
    answer = bench.call("run", str(bench.root / "plan.json"), "--replay", str(tmp_path / "bomb.zip"))
    assert (answer.code, "holds more than 100000 bytes" in answer.err) == (2, True), answer
