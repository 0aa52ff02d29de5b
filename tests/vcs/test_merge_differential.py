"""Our merge against `git merge` in a real checkout, on generated histories."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness.model.ids import CommitId
from harness.vcs.repository import Repository

FILE, EXECUTABLE, LINK, GITLINK = "100644", "100755", "120000", "160000"
CASES_FOR_EACH_CONFIG = 42
CONFIGS = [
    {},
    {"merge.renormalize": "true"},
    {"merge.directoryRenames": "true"},
    {"merge.directoryRenames": "false", "merge.renames": "false"},
    {"core.autocrlf": "input"},
    {"diff.renames": "copies", "merge.renameLimit": "2"},
    {"merge.conflictStyle": "diff3", "diff.algorithm": "histogram"},
    {"core.eol": "crlf", "merge.renormalize": "true"},
]
ATTRIBUTES = [
    b"*.txt merge=union\n",
    b"*.txt -merge\n",
    b"*.txt binary\n",
    b"*.txt text eol=lf\n",
    b"*.txt text eol=crlf\n",
    b"* text=auto\n",
    b"a/* merge=union\nb/* -merge\n",
    b"*.txt merge=nosuchdriver\n",
    b"*.txt conflict-marker-size=12\n",
    b"*.txt working-tree-encoding=UTF-8\n",
]
Tree = dict[str, tuple[str, bytes]]


def lines(rng: random.Random, *, ending: bytes = b"\n") -> bytes:
    return b"".join(b"line %d of %d" % (n, rng.randrange(1000)) + ending for n in range(rng.randrange(6, 14)))


def base_tree(rng: random.Random) -> Tree:
    tree: Tree = {}
    for directory in ("a", "b", "b/deep", ""):
        for n in range(rng.randrange(1, 5)):
            path = f"{directory}/f{n}.txt".lstrip("/")
            tree[path] = (FILE, lines(rng, ending=rng.choice([b"\n", b"\n", b"\r\n"])))
    tree["bin.dat"] = (FILE, bytes(rng.randrange(256) for _ in range(200)))
    tree["run.sh"] = (EXECUTABLE, lines(rng))
    tree["link"] = (LINK, b"a/f0.txt")
    tree["sub"] = (GITLINK, b"%040x" % rng.getrandbits(160))
    tree["empty.txt"] = (FILE, b"")
    if rng.random() < 0.5:
        tree[rng.choice([".gitattributes", "a/.gitattributes"])] = (FILE, rng.choice(ATTRIBUTES))
    return tree


def edit(rng: random.Random, tree: Tree, path: str) -> None:
    mode, content = tree[path]
    if mode == GITLINK:
        tree[path] = (mode, b"%040x" % rng.randrange(1, 5))
    elif mode == LINK:
        tree[path] = (mode, b"a/f%d.txt" % rng.randrange(3))
    elif path == "bin.dat":
        tree[path] = (mode, content[:50] + bytes([rng.randrange(256)]) + content[51:])
    else:
        parts = content.splitlines(keepends=True) or [b"\n"]
        where = rng.randrange(len(parts))
        parts[where] = rng.choice([b"changed %d\n" % rng.randrange(3), b"", parts[where] + b"more\n"])
        tree[path] = (mode, b"".join(parts))


def remove_below(tree: Tree, prefix: str) -> None:
    for path in [path for path in tree if path == prefix or path.startswith(f"{prefix}/")]:
        del tree[path]


def put(tree: Tree, path: str, entry: tuple[str, bytes]) -> None:
    """Places an entry as a file system would: nothing below it, nothing but directories above it."""
    for parent in Path(path).parents:
        tree.pop(str(parent), None)
    remove_below(tree, path)
    tree[path] = entry


def delete(_: random.Random, tree: Tree, path: str) -> None:
    del tree[path]


def rename(rng: random.Random, tree: Tree, path: str) -> None:
    entry = tree.pop(path)
    name = rng.choice(["moved.txt", "a/moved.txt", f"c/{Path(path).name}", "b/deep/x.txt"])
    put(tree, name, entry)
    if rng.random() < 0.5:
        edit(rng, tree, name)


def rename_directory(rng: random.Random, tree: Tree, _: str) -> None:
    old, new = rng.choice([("a", "renamed"), ("b", "a/inner"), ("b/deep", "deep"), ("a", "z/y")])
    for name in sorted(name for name in tree if name.startswith(f"{old}/")):
        put(tree, new + name.removeprefix(old), tree.pop(name))


def add(rng: random.Random, tree: Tree, _: str) -> None:
    put(tree, rng.choice(["a/new.txt", "b/deep/new.txt", "new.txt", "a/f9.txt"]), (FILE, lines(rng)))


def add_on_both_sides(rng: random.Random, tree: Tree, _: str) -> None:
    entry = (rng.choice([FILE, EXECUTABLE]), b"same %d\n" % rng.randrange(2))
    put(tree, rng.choice(["same.txt", "a/same.txt"]), entry)


def change_mode(_: random.Random, tree: Tree, path: str) -> None:
    mode, content = tree[path]
    tree[path] = ({FILE: EXECUTABLE, EXECUTABLE: FILE}.get(mode, mode), content)


def change_type(rng: random.Random, tree: Tree, path: str) -> None:
    put(tree, rng.choice([path, f"{path}/below.txt", "a", "b/deep"]), (rng.choice([FILE, LINK]), b"now this"))


def change_attributes(rng: random.Random, tree: Tree, _: str) -> None:
    put(tree, rng.choice([".gitattributes", "b/.gitattributes"]), (FILE, rng.choice(ATTRIBUTES)))


MUTATIONS = [
    *[edit] * 4,
    *[rename] * 2,
    delete,
    rename_directory,
    add,
    add_on_both_sides,
    change_mode,
    change_type,
    change_attributes,
]


def mutate(rng: random.Random, tree: Tree) -> None:
    if tree:
        rng.choice(MUTATIONS)(rng, tree, rng.choice(sorted(tree)))


class Oracle:
    """One repository in which real git merges what it is given."""

    def __init__(self, root: Path, config: dict[str, str]) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        for key, value in {"user.name": "U", "user.email": "u@example.org", **config}.items():
            self.git("config", key, value)
        self.git("commit", "--quiet", "--allow-empty", "--message", "first")

    def git(self, *args: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,)) -> tuple[int, bytes]:
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert done.returncode in ok, (args, done.stdout, done.stderr)
        return done.returncode, done.stdout

    def commits(self, trees: list[tuple[Tree, int | None]]) -> list[str]:
        """Commits of these trees in one process; the number is the mark of the parent."""
        stream = bytearray()
        for mark, (tree, parent) in enumerate(trees, start=1):
            stream += b"commit refs/heads/case\nmark :%d\ncommitter U <u@example.org> %d +0000\ndata 1\nx\n" % (
                mark,
                mark,
            )
            stream += b"from :%d\n" % parent if parent else b""
            stream += b"deleteall\n"
            for path, (mode, content) in sorted(tree.items()):
                if mode == GITLINK:
                    stream += f"M {mode} {content.decode()} {path}\n".encode()
                else:
                    stream += f"M {mode} inline {path}\ndata {len(content)}\n".encode() + content + b"\n"
            stream += b"\n"
        marks = self.root.parent / "marks"
        self.git("fast-import", "--quiet", "--force", f"--export-marks={marks}", stdin=bytes(stream))
        found = dict(line.split() for line in marks.read_text().splitlines())
        return [found[f":{mark}"] for mark in range(1, len(trees) + 1)]

    def merge(self, ours: str, theirs: str) -> str | None:
        """The tree of a clean merge; None for a conflict, also for one over which git 2.39 itself stumbles."""
        for entry in self.root.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for name in ("index", "index.lock"):
            (self.root / ".git" / name).unlink(missing_ok=True)
        self.git("update-ref", "--no-deref", "HEAD", ours)
        self.git("read-tree", "--reset", "-u", ours)
        # Files whose line endings are not normalised must not count as racily clean, or git calls them changed.
        later = time.time() + 10
        os.utime(self.root / ".git" / "index", (later, later))
        code, _ = self.git("merge", "--no-commit", "--no-ff", "--quiet", theirs, ok=(0, 1, 128, -6))
        assert (self.root / ".git" / "MERGE_HEAD").is_file() or code
        (self.root / ".git" / "MERGE_HEAD").unlink(missing_ok=True)
        return None if code else self.git("write-tree")[1].decode().strip()


@pytest.mark.parametrize("number", range(len(CONFIGS)))
def test_verdict_and_tree_equal_those_of_git_merge(number: int, tmp_path: Path) -> None:
    """For every generated case git and the harness agree on clean or conflict, and on the tree."""
    rng = random.Random(1000 + number)
    oracle = Oracle(tmp_path / "oracle", CONFIGS[number])
    trees: list[tuple[Tree, int | None]] = []
    for _ in range(CASES_FOR_EACH_CONFIG):
        base = base_tree(rng)
        sides = [dict(base), dict(base)]
        for side in sides:
            for _ in range(rng.randrange(1, 5)):
                mutate(rng, side)
        root = len(trees) + 1
        trees += [(base, None), (sides[0], root), (sides[1], root)]
    commits = oracle.commits(trees)
    vcs = Repository.discover(oracle.root, tmp_path / "state")
    clean = 0
    for case in range(CASES_FOR_EACH_CONFIG):
        base_id, ours, theirs = (CommitId(oid) for oid in commits[case * 3 : case * 3 + 3])
        merged = vcs.merge(ours, theirs, base_id)
        expected = oracle.merge(ours, theirs)
        assert (merged.tree, bool(merged.conflicts)) == (expected, expected is None), (
            case,
            merged,
            trees[case * 3 : case * 3 + 3],
        )
        clean += expected is not None
    assert 0 < clean < CASES_FOR_EACH_CONFIG
