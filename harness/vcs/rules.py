"""What a private git dir makes of files and merges, read once: the harness alone writes it, and only to make it."""

from __future__ import annotations

import pygit2

from harness.model.late import dataclass
from harness.vcs.private import PrivateDir

_STEADY = {"core.filemode": True, "core.symlinks": True, "core.ignorecase": False, "core.precomposeunicode": False}
_OFF = ("false", "no", "off", "0", "")


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings and files of the user that decide more than the files of a workspace themselves do."""

    steady: bool
    """A file's name, mode and kind are what the disk says."""
    converts: bool
    """What is stored may not be what the disk says, wherever it is in the tree."""
    ignores: bool
    renormalizes: bool


class Memory:
    """The rules of the private git dir that was asked about last: a run has one."""

    def __init__(self) -> None:
        self._last: tuple[PrivateDir, Rules] | None = None

    def of(self, private: PrivateDir) -> Rules:
        last = self._last
        # The very same object: another one may be of a directory that was made anew at the same place.
        if last is None or last[0] is not private:
            self._last = last = (private, read(private))
        return last[1]


def read(private: PrivateDir) -> Rules:
    config = pygit2.Config(str(private.path / "config"))
    converts_lines = "core.autocrlf" in config and (config["core.autocrlf"] or "").lower() not in _OFF
    return Rules(
        steady=all(key not in config or config.get_bool(key) is usual for key, usual in _STEADY.items()),
        converts=converts_lines or private.has_rules("info/attributes", "user-attributes"),
        ignores=private.has_rules("info/exclude", "user-excludes"),
        renormalizes="merge.renormalize" in config and config.get_bool("merge.renormalize"),
    )
