"""What a step sees of the file system, as bwrap options.

Every path is looked up again for every program, whoever ran before: a name that has become a link since is followed
to where it leads now, and only that place is mounted. Texts and not `Path`: this runs before every program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from harness import namespace
from harness.errors import MACHINE_FAULTS
from harness.model.process import ProcessSpec

TMP = "/tmp"  # noqa: S108 - the name that programs expect; inside it is the step's own
_NAMED_BELOW_TMP = re.compile(r"/tmp/[^/\s:;,'\"]+")  # noqa: S108 - as above


def options(spec: ProcessSpec) -> list[str]:
    """Mounts over a read-only root, parents before children, so that the deeper rule wins."""
    size = ["--size", str(spec.limits.file_bytes)] if spec.limits.file_bytes else []
    words = ["--perms", "1777", *size, "--tmpfs", TMP]
    rules = _rules(spec)
    hidden = [path for path, rule in rules.items() if not rule]
    for path in sorted(rules, key=len):
        words += [rules[path], path, path] if rules[path] else _mask(path)
    for path in hidden:
        words += ["--remount-ro", path] if Path(path).is_dir() else []
    return [*words, "--chdir", str(spec.cwd)]


def _rules(spec: ProcessSpec) -> dict[str, str]:
    """Place -> how it is mounted; no words mean that it is hidden."""
    rights = spec.rights
    rules = dict.fromkeys(_existing(map(str, (spec.cwd, *rights.writable))), "--bind")
    rules |= dict.fromkeys(_existing(map(str, rights.hidden)), "")
    # What the rights name, and what the command itself names below the /tmp that it will not see.
    named = _NAMED_BELOW_TMP.findall(" ".join((*spec.argv, *spec.env.values())))
    covers = [f"{path}/" for path in (TMP, *rules)]
    readable: list[str] = []
    for path in sorted(_existing((*map(str, rights.readable), *named)), key=len):
        cover = max((cover for cover in covers if path.startswith(cover)), key=len, default="")
        seen = any(path.startswith(place) for place in readable if len(place) > len(cover))
        if cover and not seen and path not in rules:
            rules[path] = "--ro-bind"
            readable.append(f"{path}/")
    return rules


def _existing(paths: Iterable[str]) -> dict[str, None]:
    """Where these lead; without those that do not exist."""
    found = (_place(path) for path in dict.fromkeys(paths))
    return {place: None for place in found if place is not None}


def _place(path: str) -> str | None:
    """Where a path leads, all links followed, in the kernel's own words: `realpath` would ask it for every part."""
    try:
        handle = os.open(namespace.seen(path), os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return None
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - as above: one text, not parts
    finally:
        os.close(handle)


def _mask(path: str) -> list[str]:
    if Path(path).is_dir():
        return ["--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]
