"""The repositories that are measured on: generated ones, or the files of a real tree."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fixtures import repos

# Django 5.2's source distribution, 6,869 files: this share of them has at most so many bytes.
_SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
_BYTES = (0, 0, 20, 114, 290, 689, 1026, 1522, 2543, 4656, 7779, 17515, 28006, 41900, 70456, 97348, 288094, 709050)
_GOLDEN = 0.618_033_988_749_895  # its multiples, modulo 1, fill the unit interval evenly, however many there are
_WORDS, _POOL_BYTES = 3000, 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A repository of one commit that everyone gets a copy of; `name` only where it is a real tree."""

    repo: Path
    files: int
    name: str = ""


def generated(folder: Path, files: int) -> Sample:
    """Sizes as in a real source tree, a hundred files to a folder, ten folders to a folder."""
    repo = repos.empty(folder)
    # Straight into a pack: 60,000 loose objects would take minutes. Text of words needs no better compression.
    settings = ["-c", "core.compression=1", "-c", "fastimport.unpackLimit=0"]
    command = ["git", "-C", str(repo), *settings, "fast-import", "--quiet", "--depth=0"]
    with tempfile.TemporaryFile() as stream:
        stream.write(b"commit refs/heads/main\ncommitter B <b@example.invalid> 1704067200 +0000\ndata 5\nStart\n")
        for name, content in _contents(files):
            stream.write(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content))
        stream.seek(0)
        subprocess.run(command, stdin=stream, env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}, check=True)
    repos.git(repo, "reset", "--quiet", "--hard")
    return Sample(repo, files)


def sizes(files: int) -> list[int]:
    """Bytes of each generated file, always the same."""
    return [_quantile(n * _GOLDEN % 1) for n in range(1, files + 1)]


def unpacked(folder: Path, source: Path) -> Sample:
    """The files of a folder or of an archive, such as a source distribution."""
    repo = repos.empty(folder)
    if source.is_dir():
        shutil.copytree(source, repo, symlinks=True, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    elif source.suffix == ".zip":
        shutil.unpack_archive(source, repo)
    else:
        # Not shutil: its protection against names that lead elsewhere came with Python 3.11.4.
        subprocess.run(["tar", "-xf", source, "-C", repo], check=True)
    repos.git(repo, "add", "--all", "--force")
    repos.git(repo, "commit", "--quiet", "--message", "Start")
    repos.git(repo, "gc", "--quiet")
    return Sample(repo, repos.git(repo, "ls-files", "-z").count("\0"), source.name)


def _quantile(share: float) -> int:
    place = bisect_right(_SHARES, share) - 1
    within = (share - _SHARES[place]) / (_SHARES[place + 1] - _SHARES[place])
    return round(_BYTES[place] + within * (_BYTES[place + 1] - _BYTES[place]))


def _contents(files: int) -> Iterator[tuple[str, bytes]]:
    """Pieces of one long text of made-up words, which compresses about as well as source does."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz_", k=chance.randint(2, 10))) for _ in range(_WORDS)]
    pool = bytearray()
    while len(pool) < _POOL_BYTES:
        pool += (" ".join(chance.choices(words, k=9)) + "\n").encode()
    for number, size in enumerate(sizes(files)):
        start = chance.randrange(_POOL_BYTES - size)
        yield f"part{number // 1000:02}/pkg{number // 100 % 10}/mod{number:05}.py", bytes(pool[start : start + size])
