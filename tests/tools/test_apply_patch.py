"""Patches apply as `git apply` would, or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ContractViolation, ToolFailed
from harness.model.plan import ApplyPatch
from harness.tools.apply_patch import apply_patch
from harness.tools.inside import Inside

_ENV = {
    "PATH": "/usr/bin:/bin",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "HOME": "/nonexistent",
}


def _git(where: Path, *arguments: str, stdin: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=where, input=stdin, env=_ENV, check=check, capture_output=True)


def _tree(root: Path) -> dict[str, tuple[bytes, bool]]:
    files = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {
        str(path.relative_to(root)): (path.read_bytes(), bool(path.stat().st_mode & 0o100)) for path in sorted(files)
    }


def _lay_out(root: Path, files: dict[str, tuple[bytes, bool]]) -> None:
    for name, (content, executable) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)


_NAMES = st.sampled_from(["a.txt", "b", "dir/c.txt", "dir/deep/d", "with space", "umlaut-ä", 'quo"te', "tab\there"])
_LINES = st.sampled_from(
    [b"one", b"two", b"three", b"", b" indented", b"-minus", b"+plus", b"cr\r", b"\xc3\xa4", b"@@ -1 +1 @@"]
)
_CONTENT = st.tuples(st.lists(_LINES, max_size=25), st.booleans()).map(
    lambda made: b"\n".join(made[0]) + (b"\n" if made[1] and made[0] else b"")
)
_FILES = st.dictionaries(_NAMES, st.tuples(_CONTENT, st.booleans()), max_size=5).filter(
    lambda files: not ("dir" in files and any(name.startswith("dir/") for name in files))
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(before=_FILES, after=_FILES, context=st.sampled_from([1, 3]))
def test_a_diff_between_two_trees_turns_one_into_the_other(tmp_path_factory, before, after, context) -> None:
    """Whatever git writes as a diff (renames, modes, deletions, odd names, missing line ends) is applied exactly."""
    root = tmp_path_factory.mktemp("patch")
    _git(root, "init", "-q")
    _lay_out(root, before)
    _git(root, "add", "-A", "-f")
    old = _git(root, "write-tree").stdout.strip().decode()
    for path in [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]:
        path.unlink()
    _lay_out(root, after)
    _git(root, "add", "-A", "-f")
    new = _git(root, "write-tree").stdout.strip().decode()
    diff = _git(root, "diff", "-M", f"-U{context}", old, new, "--").stdout
    _git(root, "read-tree", "-u", "--reset", old)
    assert _tree(root) == before
    if diff:
        apply_patch(ApplyPatch(patch=diff.decode("utf-8")), Inside(root))
    assert _tree(root) == after


def test_a_plain_diff_with_times_and_without_prefixes_applies(desk) -> None:
    """`diff -u old new` is a patch, too."""
    (desk.workspace / "f").write_text("1\n2\n3\n")
    desk.call(
        "apply_patch", patch="--- f\t2026-01-01 00:00\n+++ f\t2026-01-02 00:00\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
    )
    assert desk.files() == {"f": "1\ntwo\n3\n"}


def test_a_hunk_may_have_moved_but_only_to_one_place(desk) -> None:
    """Shifted lines are found; a second candidate is a failure, not a guess."""
    patch = "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n"
    (desk.workspace / "f").write_text("0\n0\n0\na\nb\nc\nz\n")
    desk.call("apply_patch", patch=patch)
    assert desk.files() == {"f": "0\n0\n0\na\nB\nc\nz\n"}
    (desk.workspace / "f").write_text("0\n0\n0\na\nb\nc\na\nb\nc\nz\n")
    with pytest.raises(ToolFailed, match="hunk 1 of f does not apply"):
        desk.call("apply_patch", patch=patch)


_GOOD = "diff --git a/good b/good\nnew file mode 100644\n--- /dev/null\n+++ b/good\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-other\n+x\n", "hunk 1 of f does not apply"),
        ("--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-a\n+b\n", "gone does not exist"),
        ("diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "f exists already"),
        ("diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to good\n", "good exists already"),
        (
            "diff --git a/f b/f\ndeleted file mode 100644\n",
            "f is to be deleted",
        ),
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
            "the patch has mode '120000'",
        ),
        ("diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 0\n", "the patch has a binary change"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "the patch has a binary change"),
        ("--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n here\n", "the patch has the end of the patch inside a hunk"),
        ("--- a/f\n+++ b/f\n@@ -x +1 @@\n", "the patch has a damaged hunk header"),
        ("--- a/link\n+++ b/link\n@@ -1 +1 @@\n-here\n+x\n", "link is a symbolic link"),
    ],
)
def test_one_bad_part_stops_the_whole_patch(desk, bad, message) -> None:
    """All or nothing: the good file before it is not created."""
    (desk.workspace / "f").write_text("here\nthere\n")
    (desk.workspace / "link").symlink_to("f")
    with pytest.raises(ToolFailed) as caught:
        desk.call("apply_patch", patch=_GOOD + bad)
    assert caught.value.message.startswith(message)
    assert desk.files() == {"f": "here\nthere\n"}


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", ".git/hooks/x", "linked/out", ".orchestrix/local/x"])
def test_a_patch_cannot_reach_out(desk, tmp_path, name) -> None:
    """The same walls as for every other tool, and nothing of the patch is done."""
    (desk.workspace / "linked").symlink_to(tmp_path)
    bad = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(ContractViolation):
        desk.call("apply_patch", patch=_GOOD + bad)
    assert desk.files() == {}
    assert [path.name for path in tmp_path.iterdir()] == ["workspace"]


@pytest.mark.parametrize("text", ["nothing here", "\n", "@@ -1 +1 @@\n-a\n+b\n"])
def test_text_that_is_no_patch_is_refused(desk, text) -> None:
    """An empty success would hide a broken answer of a model."""
    with pytest.raises(ToolFailed):
        desk.call("apply_patch", patch=text)


def test_a_file_can_make_room_for_a_directory(desk) -> None:
    """Deletions come first, so that names can change their kind; a failing write puts everything back."""
    (desk.workspace / "x").write_text("file\n")
    deletion = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-file\n"
    creation = "diff --git a/{0} b/{0}\nnew file mode 100755\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+in\n"
    with pytest.raises(ToolFailed, match="File name too long"):
        desk.call("apply_patch", patch=deletion + creation.format("x/y") + creation.format("n" * 300))
    assert desk.files() == {"x": "file\n"}
    desk.call("apply_patch", patch=deletion + creation.format("x/y"))
    assert desk.files() == {"x/y": "in\n"}
