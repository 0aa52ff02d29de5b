"""Every agent by its name: one literal table, the programs that settings name, and programs with a profile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.agents.actions import ActionsAgent
from harness.agents.command import CommandAgent
from harness.agents.profile_table import ProfileTable
from harness.config.acp_program import AcpProgram
from harness.errors import EnvironmentProblem
from harness.model.late import dataclass
from harness.ports import Agent

if TYPE_CHECKING:
    from harness.agents.profile import Profile

_BUILT_IN: Mapping[str, Callable[[], Agent]] = {"actions": ActionsAgent, "command": CommandAgent}
_THINKER = "builtin"


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether an agent can be used on this machine, and why not."""

    name: str
    kind: str
    usable: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Thinker:
    """The agent that is a model, made by the composition root; `missing` says what it lacks to be usable."""

    make: Callable[[], Agent]
    detail: str
    missing: str = ""


class Registry:
    """Agents of this installation; a name of the table cannot be taken, a profile's name can be given a command."""

    def __init__(
        self,
        programs: Mapping[str, Sequence[str]],
        profiles: ProfileTable | None = None,
        speaking: Mapping[str, AcpProgram] | None = None,
        thinker: Thinker | None = None,
    ) -> None:
        """Raises ConfigInvalid when a profile's file takes a name that exists already."""
        own = {*_BUILT_IN, _THINKER}
        self._thinker = thinker
        self._programs = {name: tuple(argv) for name, argv in programs.items() if name not in own}
        self._speaking = {name: program for name, program in (speaking or {}).items() if name not in own}
        self._profiles = profiles or ProfileTable()
        files = self._profiles.files(own)
        taken = {*self._programs, *self._speaking}
        self._files = {name: path for name, path in files.items() if name not in taken}

    @property
    def names(self) -> tuple[str, ...]:
        return (
            *_BUILT_IN,
            *([_THINKER] if self._thinker else []),
            *sorted((*self._programs, *self._speaking, *self._files)),
        )

    def profile(self, name: str) -> Profile | None:
        """The profile of this name, if it has one; raises ConfigInvalid."""
        return self._profiles.profile(self._files[name]) if name in self._files else None

    def agent(self, name: str) -> Agent:
        """The agent of this name; raises EnvironmentProblem, naming those that exist."""
        if name in _BUILT_IN:
            return _BUILT_IN[name]()
        if name == _THINKER and self._thinker is not None:
            return self._thinker.make()
        if name in self._programs:
            return CommandAgent(self._programs[name])
        if name in self._speaking:
            from harness.agents.acp.agent import AcpAgent  # noqa: PLC0415 - only plans that name one pay for it

            return AcpAgent(self._speaking[name], os.environ)
        if name in self._files:
            return self._profiles.agent(self._files[name])
        raise EnvironmentProblem(
            f"there is no agent {name!r:.80}",
            hint=f"the agents are {', '.join(self.names)}; name a program for it in the settings",
        )

    def available(self, name: str) -> Availability:
        """Looks, but starts nothing."""
        if name in _BUILT_IN:
            return Availability(name, name, usable=True, detail="built in")
        if name == _THINKER and self._thinker is not None:
            made = self._thinker
            return Availability(name, "model", usable=not made.missing, detail=made.missing or made.detail)
        known = self.profile(name)
        if known is not None:
            found = shutil.which(known.program)
            detail = found or f"program {known.program!r} was not found"
            return Availability(name, "profile", usable=found is not None, detail=detail)
        if name in self._speaking and (lacking := _lacking_acp()):
            return Availability(name, "acp", usable=False, detail=lacking)
        argv = self._programs.get(name) or (self._speaking[name].command if name in self._speaking else None)
        if argv is None:
            return Availability(name, "unknown", usable=False, detail="not in the settings")
        found = shutil.which(argv[0]) if argv else None
        detail = found or f"program {argv[0] if argv else ''!r} was not found"
        kind = "acp" if name in self._speaking else "command"
        return Availability(name, kind, usable=found is not None, detail=detail)


def _lacking_acp() -> str:
    """Why no agent can be talked with here; empty when they can."""
    from harness.agents.acp.agent import NEEDS, installed  # noqa: PLC0415 - as above

    return "" if installed() else f"the library {NEEDS} is not installed"
