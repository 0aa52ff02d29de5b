"""Every agent by its name: one literal table, and the programs that settings name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.agents.actions import ActionsAgent
from harness.agents.command import CommandAgent
from harness.errors import EnvironmentProblem
from harness.ports import Agent

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
    """Agents of this installation; a name of the table cannot be taken by settings."""

    def __init__(self, programs: Mapping[str, Sequence[str]], thinker: Thinker | None = None) -> None:
        self._thinker = thinker
        taken = {*_BUILT_IN, _THINKER}
        self._programs = {name: tuple(argv) for name, argv in programs.items() if name not in taken}

    @property
    def names(self) -> tuple[str, ...]:
        return (*_BUILT_IN, *([_THINKER] if self._thinker else []), *sorted(self._programs))

    def agent(self, name: str) -> Agent:
        """The agent of this name; raises EnvironmentProblem, naming those that exist."""
        if name in _BUILT_IN:
            return _BUILT_IN[name]()
        if name == _THINKER and self._thinker is not None:
            return self._thinker.make()
        if name in self._programs:
            return CommandAgent(self._programs[name])
        raise EnvironmentProblem(
            f"there is no agent {name!r:.80}",
            hint=f"the agents are {', '.join(self.names)}; name a program for it in the settings",
        )

    def available(self, name: str) -> Availability:
        """Looks, but starts nothing."""
        if name in _BUILT_IN:
            return Availability(name, name, usable=True, detail="built in")
        if name == _THINKER and self._thinker is not None:
            found = self._thinker
            return Availability(name, "model", usable=not found.missing, detail=found.missing or found.detail)
        argv = self._programs.get(name)
        if argv is None:
            return Availability(name, "unknown", usable=False, detail="not in the settings")
        program = shutil.which(argv[0]) if argv else None
        detail = program or f"program {argv[0] if argv else ''!r} was not found"
        return Availability(name, "command", usable=program is not None, detail=detail)
