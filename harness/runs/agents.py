"""What agents there are here, what binds each of them, and whether a program keeps what its profile says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from harness.agents import detect
from harness.agents.conformance.check import Claim, check
from harness.agents.profile import Profile
from harness.engine import event_loop
from harness.errors import NotFound, UsageError
from harness.model.late import dataclass
from harness.ports import Processes
from harness.wiring import Project


@dataclass(frozen=True, slots=True)
class Row:
    """One agent; `program_enforces` and `sandbox_enforces` say who keeps which part of the contract."""

    name: str
    kind: str
    available: bool
    detail: str
    version: str = ""
    proven: str = ""
    program_enforces: tuple[str, ...] = ()
    sandbox_enforces: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def rows(project: Project) -> list[Row]:
    """Every agent that a plan can name; programs with a profile are asked for their version, all at once."""
    return event_loop.run(_rows(project))


async def _rows(project: Project) -> list[Row]:
    known = project.agents
    return list(await asyncio.gather(*(_row(project, name) for name in known.names)))


async def _row(project: Project, name: str) -> Row:
    profile = project.agents.profile(name)
    if profile is None:
        found = project.agents.available(name)
        return Row(name, found.kind, found.usable, found.detail)
    seen = await detect.version(profile, project.processes)
    program, sandbox = enforcement(profile, project.processes)
    return Row(name, "profile", seen.path is not None, seen.detail, seen.version, profile.proven, program, sandbox)


def enforcement(profile: Profile, processes: Processes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the program itself keeps of a contract, and what the sandbox of this machine does."""
    program = ("allowed_tools",) if profile.lists_tools else ()
    sandbox = ("directories", "processes", "time") if processes.protects_parent else ("processes", "time")
    return program, sandbox


def claims(project: Project, name: str, told: Callable[[Claim], None]) -> list[Claim]:
    """Tries the installed program of a profile; each claim is told as soon as it is known. Raises NotFound, UsageError."""
    if name not in project.agents.names:
        raise NotFound(f"there is no agent {name!r:.80}", hint=f"the agents are {', '.join(project.agents.names)}")
    profile = project.agents.profile(name)
    if profile is None:
        raise UsageError(f"the agent {name!r:.80} has no profile to check", hint="see `orchestrix agents`")
    return event_loop.run(_claims(project, profile, told))


async def _claims(project: Project, profile: Profile, told: Callable[[Claim], None]) -> list[Claim]:
    """Where workspaces are made, too: some programs distrust a directory that others may write."""
    home = project.settings.state_home
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = []
    async for claim in check(profile, project.processes, home):
        told(claim)
        found.append(claim)
    return found
