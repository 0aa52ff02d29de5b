"""The sample repositories are what they say, and the same everywhere."""

from __future__ import annotations

import pytest

from fixtures import repos

BUILDERS = [repos.small, repos.wide, repos.with_history, repos.with_attributes, repos.odd_names]


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_samples_are_clean_and_reproducible(build, tmp_path):
    """Two builds have the same commit and nothing to commit."""
    one, two = build(tmp_path / "one"), build(tmp_path / "two")
    assert repos.git(one, "rev-parse", "HEAD") == repos.git(two, "rev-parse", "HEAD")
    assert repos.git(one, "status", "--porcelain") == ""


def test_wide_has_as_many_files_as_asked(tmp_path):
    """The number of files is exact."""
    assert len(repos.git(repos.wide(tmp_path, files=230), "ls-files").splitlines()) == 230


def test_submodule_is_a_gitlink(tmp_path):
    """The submodule is recorded as one and checked out."""
    repo = repos.with_submodule(tmp_path / "repo")
    assert repos.git(repo, "ls-files", "--stage", "vendor/part").startswith("160000 ")
    assert (repo / "vendor/part/part.txt").read_text() == "part\n"


def test_dirty_checkout_has_every_kind_of_change(tmp_path):
    """Staged, unstaged, deleted, untracked, ignored and stashed work are all there."""
    repo = repos.dirty(tmp_path / "repo")
    assert repos.git(repo, "status", "--porcelain", "--ignored").splitlines() == [
        " M README.md",
        "M  docs/guide.md",
        " D src/lib/unused.py",
        "?? scratch.txt",
        "!! .env",
    ]
    assert repos.git(repo, "stash", "list") == "stash@{0}: On main: for later\n"
