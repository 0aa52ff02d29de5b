"""The names that are looked at hold every name that `git fsck --strict` refuses; git is asked about those alone."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from pygit2.enums import FileMode

from harness.vcs import strict, trees
from harness.vcs.git import Git
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

PIECES = [
    *(
        ".",
        "git",
        "GIT",
        "Git",
        "gi",
        "t",
        "~1",
        "~2",
        "mod",
        "modules",
        "attributes",
        "ignore",
        "7eba",
        "7d29",
        "gitatt",
    ),
    *("gitmod", " ", "..", ":", "::$INDEX_ALLOCATION", "\\", "\u200c", "\u200d", "\ufeff", "\u0130", "x", "hub", "-"),
]
KINDS = [FileMode.BLOB, FileMode.LINK, FileMode.TREE, FileMode.COMMIT]


def refused_by_git(checkout: Checkout, raw: bytes) -> bool:
    """Git's own verdict on one tree object, by the check of everything that comes in from outside."""
    oid = subprocess.check_output(
        ["git", "hash-object", "-t", "tree", "--literally", "-w", "--stdin"], cwd=checkout.root, input=raw
    )
    done = subprocess.run(["git", "fsck", "--strict"], cwd=checkout.root, capture_output=True, check=False, text=True)
    name = oid.decode().strip()
    (checkout.root / ".git" / "objects" / name[:2] / name[2:]).unlink()
    return any(line.startswith("error in tree") for line in done.stderr.splitlines())


@example(name=".GIT", kind=FileMode.TREE)
@example(name="git~1", kind=FileMode.BLOB)
@example(name="gi7eba~1", kind=FileMode.LINK)
@example(name="gitmod~4", kind=FileMode.LINK)
@example(name=".g\u200cit", kind=FileMode.BLOB)
@example(name=".gitmodules ", kind=FileMode.LINK)
@example(name="a\\.git", kind=FileMode.BLOB)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), kind=st.sampled_from(KINDS))
def test_no_name_that_git_refuses_passes_unasked(checkout: Checkout, name: str, kind: FileMode) -> None:
    """Variants of names that git keeps to itself on one system or another."""
    raw = name.encode()
    blob = checkout.git("rev-parse", "HEAD^{tree}" if kind == FileMode.TREE else "HEAD:README.md")
    entry = trees.made(kind, raw, blob)
    assume(raw not in (b".", b".."))  # no file system has such a file
    assert strict.is_doubtful(raw) or not refused_by_git(checkout, entry), name
    harmless = strict.harmless(raw)
    assert not refused_by_git(checkout, trees.made(kind, harmless, blob)), harmless


def test_git_is_asked_about_doubtful_names_alone(
    checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step whose files have ordinary names costs no call; one that leaves rules for git costs one."""
    calls: list[str] = []
    real = Git.run

    def counted(self: Git, *args: str | bytes, **options: object) -> object:
        calls.append(str(args[0]))
        return real(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "run", counted)
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    calls.clear()
    (workspace.path / ".github").mkdir()
    (workspace.path / ".github" / "work.yml").write_text("x")
    (workspace.path / ".gitkeep").write_text("")
    assert vcs.snapshot(workspace, "plain", 1).refused == ""
    assert calls == []
    (workspace.path / ".gitattributes").write_text("*.txt text\n")
    assert vcs.snapshot(workspace, "rules", 1).refused == ""
    assert calls.count("fsck") == 1
