"""What is measured on: generated repositories that are like real ones, and real trees."""

from __future__ import annotations

import shutil
import statistics
import zlib
from pathlib import Path

import pytest

from bench import samples
from bench.places import Task
from fixtures import repos


def test_generated_files_are_as_large_as_real_ones() -> None:
    """Most are small, a few are large; a handful of files has the same mix as thousands."""
    for files in (500, 7_000):
        found = samples.sizes(files)
        assert 1_300 < statistics.median(found) < 1_800
        assert 6_000 < statistics.mean(found) < 8_000
    assert sum(size == 0 for size in samples.sizes(7_000)) > 300
    assert max(samples.sizes(7_000)) > 300_000


def test_a_generated_repository_is_always_the_same_and_clean(tmp_path: Path) -> None:
    """A hundred files to a folder, in one pack, and text that does not compress to nothing."""
    one, two = (samples.generated(tmp_path / name, 250) for name in ("one", "two"))
    assert repos.git(one.repo, "rev-parse", "HEAD") == repos.git(two.repo, "rev-parse", "HEAD")
    assert repos.git(one.repo, "status", "--porcelain") == ""
    assert sorted(path.name for path in (one.repo / "part00").iterdir()) == ["pkg0", "pkg1", "pkg2"]
    assert len(list((one.repo / "part00" / "pkg0").iterdir())) == 100
    assert len(list((one.repo / ".git" / "objects" / "pack").glob("*.pack"))) == 1
    content = b"".join(path.read_bytes() for path in one.repo.glob("part00/pkg*/*"))
    assert len(content) == sum(samples.sizes(250))
    assert 0.2 < len(zlib.compress(content)) / len(content) < 0.6


@pytest.mark.parametrize("form", ["folder", "zip", "gztar"])
def test_a_real_tree_can_be_measured(tmp_path: Path, form: str) -> None:
    """A folder or an archive becomes the repository; files with odd names are there, but no step edits them."""
    repos.write(tmp_path / "tree", {"pkg/a.py": "A\n", "pkg/b c.py": "B\n", "pkg/d.py": "D\n", ".gitignore": "*.py\n"})
    tree = tmp_path / "tree"
    if form != "folder":
        tree = Path(shutil.make_archive(str(tmp_path / "packed"), form, tree))
    sample = samples.unpacked(tmp_path / "repo", tree)
    assert repos.git(sample.repo, "ls-files").splitlines() == [".gitignore", "pkg/a.py", "pkg/b c.py", "pkg/d.py"]
    assert Task(sample, 1).written == [("new0.txt", ".gitignore", "pkg/a.py")]
    assert Task(sample, 2).title == f"2 steps on 4 files of {tree.name}"


def test_a_plan_may_have_more_steps_than_the_repository_has_files(tmp_path: Path) -> None:
    """Every step still writes three files of its own."""
    assert Task(samples.generated(tmp_path, 5), 4).written == [
        ("new0.txt", "part00/pkg0/mod00000.py", "part00/pkg0/mod00001.py"),
        ("new1.txt", "part00/pkg0/mod00002.py", "part00/pkg0/mod00003.py"),
        ("new2.txt", "more/file00000.py", "more/file00001.py"),
        ("new3.txt", "more/file00002.py", "more/file00003.py"),
    ]
