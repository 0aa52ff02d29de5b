"""Profiles by name: those of the package, and those that a user or a project adds as files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ConfigInvalid
from harness.model.late import dataclass

if TYPE_CHECKING:
    from harness.agents.cli import CliAgent
    from harness.agents.profile import Profile

_BUNDLED = Path(__file__).parent / "profiles"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """Where profiles are looked for, and what the settings say of them; nothing is read before it is asked for."""

    folders: tuple[Path, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    resumes: bool = False

    def files(self, taken: Iterable[str]) -> dict[str, Path]:
        """Every profile's file; raises ConfigInvalid for one that takes a name which is not its own to take."""
        found = {path.stem: path for path in sorted(_BUNDLED.glob("*.toml"))}
        for folder in self.folders:
            for path in sorted(folder.glob("*.toml")):
                if not _NAME.fullmatch(path.stem):
                    raise ConfigInvalid(f"{path}: an agent's name is in lower case", hint="rename the file")
                if path.stem in found or path.stem in taken:
                    raise ConfigInvalid(f"{path}: the agent {path.stem!r} exists already", hint="rename the file")
                found[path.stem] = path
        return found

    def profile(self, path: Path) -> Profile:
        """The profile in this file; raises ConfigInvalid."""
        from harness.agents import profile  # noqa: PLC0415 - a plan without such an agent does not pay for it

        return profile.load(path)

    def agent(self, path: Path) -> CliAgent:
        """The agent that runs the program of this file; raises ConfigInvalid."""
        from harness.agents.cli import CliAgent  # noqa: PLC0415 - as above

        known = self.profile(path)
        return CliAgent(known, os.environ, model=self.models.get(known.name, ""), resumes=self.resumes)
