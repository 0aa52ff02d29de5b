"""Content of the work: everything that an agent can leave in a worktree arrives as it is."""

from __future__ import annotations

import os

import pytest
from support.workbench import Workbench, shell

CHANGES = r"""
echo uncommitted >> a.txt
echo staged > staged.txt && git add staged.txt
mkdir -p 'sp ace/deep' && echo untracked > 'sp ace/deep/untracked.txt'
rm gone.txt
git mv moved.txt there.txt
chmod +x tool.sh
ln -s a.txt link && ln -sf nowhere dangling
printf '\000\001\377\n\r\n' > binary.bin
printf x > "$(printf 'odd\nname\twith \\ and "quotes"')"
printf y > "$(printf 'latin-\351')"
printf z > -- && printf z > './--force'
rm -r folder && echo now a file > folder
rm file && mkdir file && echo now a directory > file/inside
: > empty
printf 'crlf\r\n' > crlf.txt
"""


def entries(bench: Workbench, revision: str) -> dict[str, tuple[str, str]]:
    """Mode and blob of every path."""
    rows = bench.git("ls-tree", "-r", "-z", revision).split("\0")
    found = (row.split("\t", 1) for row in rows if row)
    return {name: tuple(about.split(" ")[::2]) for about, name in found}  # type: ignore[misc]


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_every_kind_of_change_arrives(bench: Workbench, sandbox: str) -> None:
    """Uncommitted, staged, untracked, deleted, renamed, mode-only, links, binary, odd names, file and directory swaps."""
    bench.commit(
        {"gone.txt": "g\n", "moved.txt": "m\n" * 9, "tool.sh": "#!/bin/sh\n", "folder/x": "x\n", "file": "f\n"}
    )
    done = bench.run(shell(CHANGES), flags=("--sandbox", sandbox))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    found = entries(bench, done.data["head"])
    odd, latin = 'odd\nname\twith \\ and "quotes"', os.fsdecode(b"latin-\xe9")
    assert sorted(found) == sorted(
        [
            *("a.txt", "staged.txt", "sp ace/deep/untracked.txt", "there.txt", "tool.sh", "link", "dangling"),
            *("binary.bin", odd, latin, "--", "--force", "folder", "file/inside", "empty", "crlf.txt"),
            *("README.md", "src/lib.py"),
        ]
    )
    assert (found["tool.sh"][0], found["link"][0], found["dangling"][0]) == ("100755", "120000", "120000")
    assert bench.git("cat-file", "blob", found["dangling"][1]) == "nowhere"
    assert bench.git("cat-file", "-s", found["binary.bin"][1]) == "6"
    assert bench.git("cat-file", "-s", found["crlf.txt"][1]) == "6"
    assert done.steps[0]["changed_paths"] == sorted(done.steps[0]["changed_paths"])
    assert bench.call("report", "latest", "--step", "0").code == 0
    assert bench.call("status", "latest").code == 0


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_the_agents_own_commits_are_kept_and_its_files_decide(bench: Workbench, sandbox: str) -> None:
    """Two commits and an uncommitted change: the snapshot has the files, a keep ref has the commits."""
    done = bench.run(
        shell(
            "git config user.name || true; export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A"
            " GIT_COMMITTER_EMAIL=a@b; echo 1 > one.txt && git add one.txt && git commit -qm 'First of mine' &&"
            " echo 2 > two.txt && git add two.txt && git commit -qm 'Second of mine' && echo 3 >> two.txt"
        ),
        flags=("--sandbox", sandbox),
    )
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert bench.tree(done.data["head"])["two.txt"] == "2\n3"
    taken = next(event["payload"] for event in bench.events() if event["type"] == "snapshot.taken")
    (tip,) = taken["agent_commits"]
    assert bench.git("log", "--format=%s", f"{done.data['base']}..{tip}").splitlines() == [
        "Second of mine",
        "First of mine",
    ]
    assert tip in bench.git("for-each-ref", "--format=%(objectname)", "refs/orchestrix/keep")
    assert "First of mine" not in bench.git("log", "--format=%s", done.data["head"])


def test_commits_of_an_agent_that_fails_or_takes_its_changes_back_are_kept(bench: Workbench) -> None:
    """Committed, then reset away from the files: still reachable, although there is no change to merge."""
    done = bench.run(
        shell(
            "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b;"
            "echo 1 > one.txt && git add one.txt && git commit -qm Mine && rm one.txt"
        )
    )
    assert done.reasons == ["no_changes"]
    taken = next(event["payload"] for event in bench.events() if event["type"] == "snapshot.taken")
    assert bench.git("log", "-1", "--format=%s", taken["agent_commits"][0]) == "Mine"
    assert taken["agent_commits"][0] in bench.git("for-each-ref", "--format=%(objectname)", "refs/orchestrix/keep")


def test_a_nested_repository_is_never_dropped_silently(bench: Workbench) -> None:
    """Its files are in the snapshot as files; the report says that its history is not."""
    done = bench.run(
        shell(
            "git init -q vendor && echo inner > vendor/inner.txt && cd vendor && git add . &&"
            " git -c user.name=A -c user.email=a@b commit -qm Inner && echo loose > loose.txt"
        )
    )
    assert (done.code, done.reasons) == (0, ["merged"])
    tree = bench.tree(done.data["head"])
    assert (tree["vendor/inner.txt"], tree["vendor/loose.txt"]) == ("inner", "loose")
    assert not [name for name in tree if "/.git/" in name]
    assert "repository of its own" in bench.call("report", "latest", "--step", "0").out


def test_attributes_and_ignore_rules_of_the_repository_apply(bench: Workbench) -> None:
    """Ignored files stay out, line endings are normalised, and a union merge attribute decides a merge."""
    bench.commit(
        {".gitattributes": "*.txt text eol=lf\nnotes.md merge=union\n", ".gitignore": "*.log\n", "notes.md": "0\n"}
    )
    done = bench.run(
        shell(
            "printf 'a\\r\\nb\\r\\n' > crlf.txt; echo x > debug.log; echo 1 >> notes.md", owns=["crlf.txt", "notes.md"]
        ),
        shell("echo 2 >> notes.md", owns=["notes.md"]),
        overlap="allow",
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    tree = bench.tree(done.data["head"])
    assert "debug.log" not in tree
    assert bench.git("cat-file", "-s", f"{done.data['head']}:crlf.txt") == "4"
    assert tree["notes.md"].split() == ["0", "1", "2"]


def test_what_steps_change_is_seen_by_diff_show_and_the_next_step(bench: Workbench) -> None:
    """A patch and a move by actions, read back by a dependant."""
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"
    done = bench.run(
        {
            "title": "Actions",
            "owns": ["a.txt", "src/**"],
            "actions": [
                {"apply_patch": {"patch": patch}},
                {"move_file": {"source": "src/lib.py", "target": "src/core.py"}},
                {"run": ["sh", "-c", "echo ran > src/ran.txt"]},
            ],
        },
        shell("cat a.txt src/core.py src/ran.txt > seen.txt; test ! -e src/lib.py", owns=["seen.txt"], needs=[0]),
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    assert bench.tree(done.data["head"])["seen.txt"].split() == ["one", "zwei", "three", "VALUE", "=", "1", "ran"]
