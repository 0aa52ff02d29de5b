"""What a step sees of the file system, as bwrap options."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from harness.model.process import ProcessSpec

TMP = Path("/tmp")  # noqa: S108 - the name that programs expect; inside it is the step's own
_NAMED_BELOW_TMP = re.compile(r"/tmp/[^/\s:;,'\"]+")  # noqa: S108 - as above


def options(spec: ProcessSpec) -> list[str]:
    """Mounts over a read-only root, parents before children, so that the deeper rule wins."""
    size = ["--size", str(spec.limits.file_bytes)] if spec.limits.file_bytes else []
    words = ["--perms", "1777", *size, "--tmpfs", str(TMP)]
    hidden = _existing(spec.rights.hidden)
    writable = _existing((spec.cwd, *spec.rights.writable))
    covers = {TMP, *hidden, *writable}
    readable = {path for path in _readable(spec) if covers.intersection(path.parents)}
    rules = dict.fromkeys(readable, "--ro-bind") | dict.fromkeys(writable, "--bind") | dict.fromkeys(hidden, "")
    for path in sorted(rules, key=lambda path: len(path.parts)):
        words += [rules[path], str(path), str(path)] if rules[path] else _mask(path)
    for source, target, writes in spec.rights.mounts:
        words += ["--bind" if writes else "--ro-bind", str(source.resolve()), str(target)]
    for path in hidden:
        words += ["--remount-ro", str(path)] if path.is_dir() else []
    return [*words, "--chdir", str(spec.cwd)]


def _existing(paths: Iterable[Path]) -> set[Path]:
    found = set()
    for path in paths:
        with suppress(OSError):  # it does not exist
            found.add(Path(os.path.realpath(path, strict=True)))
    return found


def _readable(spec: ProcessSpec) -> Iterator[Path]:
    """What the rights name, and what the command itself names below the /tmp that it will not see."""
    yield from _existing(spec.rights.readable)
    named = " ".join((*spec.argv, *spec.env.values()))
    yield from _existing(Path(name) for name in _NAMED_BELOW_TMP.findall(named))


def _mask(path: Path) -> list[str]:
    if path.is_dir():
        return ["--tmpfs", str(path)]
    return ["--ro-bind", "/dev/null", str(path)]
