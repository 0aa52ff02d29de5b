"""The user's effective git configuration, read once and reduced to what the harness may follow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.model.late import dataclass
from harness.vcs.git import Git
from harness.vcs.repo import Layout

# Settings that decide content or merge verdicts and that name no program.
FOLLOWED = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.bigfilethreshold",
    "merge.renames",
    "merge.renamelimit",
    "merge.directoryrenames",
    "merge.renormalize",
    "merge.conflictstyle",
    "diff.renames",
    "diff.renamelimit",
    "diff.algorithm",
)
_FALLBACK_NAME = "Orchestrix"
_FALLBACK_EMAIL = "orchestrix@localhost"


@dataclass(frozen=True, slots=True)
class Effective:
    """Values by lower-case key, and the files that they came from."""

    values: Mapping[str, str]
    origins: tuple[Path, ...]

    @property
    def followed(self) -> dict[str, str]:
        return {key: self.values[key] for key in FOLLOWED if key in self.values}

    @property
    def identity(self) -> tuple[str, str]:
        """Name and e-mail address for commits of the harness."""
        name, email = (_plain(self.values.get(key, "")) for key in ("user.name", "user.email"))
        return (name, email) if name and email else (_FALLBACK_NAME, _FALLBACK_EMAIL)

    @property
    def hooks_path(self) -> Path | None:
        value = self.values.get("core.hookspath", "")
        return Path(value).expanduser() if value else None

    def companion(self, key: str, default: str) -> Path:
        """A file beside the config: what the key names, else its place in the user's config directory."""
        value = self.values.get(key, "")
        return Path(value).expanduser() if value else user_config_dir() / default


def user_config_dir() -> Path:
    """Where git looks for the user's own files."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path.home() / ".config") / "git"


def read(layout: Layout) -> Effective:
    """What git would use in this checkout now."""
    door = Git(layout.git_dir, layout.root, user_config=True)
    words = door.run("config", "--list", "--includes", "--show-origin", "-z").items()
    values: dict[str, str] = {}
    origins: dict[Path, None] = {}
    for origin, setting in zip(words[::2], words[1::2], strict=True):
        kind, _, where = os.fsdecode(origin).partition(":")
        if kind != "file":
            continue
        key, separator, value = setting.decode("utf-8", "replace").partition("\n")
        values[key] = value if separator else "true"
        origins[(layout.root / where).absolute()] = None
    return Effective(values, tuple(origins))


def _plain(value: str) -> str:
    return "".join(char for char in value if char.isprintable() and char not in "<>").strip()
