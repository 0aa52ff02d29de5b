"""A stage for one program: an empty directory, the real door, a scripted model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import cast

from harness.agents import prompt
from harness.agents.cli import CliAgent
from harness.agents.conformance.scenarios import script
from harness.agents.conformance.server import ModelServer
from harness.agents.profile import Profile, filled
from harness.model.contract import Contract, Execution, Parent, Permissions, StepText, Work
from harness.model.late import dataclass
from harness.model.process import Means, ProcessResult, ProcessSpec, Rights
from harness.ports import Execute, Job, Outcome, Processes, ToolOffer
from harness.sandbox import environment

_SECONDS = 120


@dataclass(slots=True)
class Stage:
    """Plays one step after the other with one profile, each in a directory of its own."""

    root: Path
    profile: Profile
    processes: Processes
    server: ModelServer
    played: int = 0

    @property
    def here(self) -> Path:
        """Where the last step was played."""
        return self.root / f"step-{self.played}" / "workspace"

    async def play(
        self,
        scenario: str,
        *actions: Mapping[str, str],
        tools: Iterable[str] = ("read_file", "write_file", "edit_file", "run"),
    ) -> Outcome:
        """One attempt at a step whose description tells the scripted model what to do."""
        self.played += 1
        self.here.mkdir(parents=True)
        private = self.here.parent / "private"
        private.mkdir()
        contract = _contract(script(*actions) if actions else "Nothing.", tuple(tools))
        job = Job(
            contract=contract,
            attempt=1,
            workspace=self.here,
            prompt=prompt.render(contract),
            env={},
            private=private,
            log=self.here.parent / "logs" / "log",
            confined=self.processes.protects_parent,
        )
        job.log.parent.mkdir()
        return await self.agent(scenario).perform(job, _NoTools(), self._execute(job))

    def agent(self, scenario: str) -> CliAgent:
        """The profile's agent, pointed at a scenario of the scripted model."""
        check = self.profile.check
        address = {"url": self.server.url(scenario)}
        given = {name: filled(value, address) for name, value in check.environment.items()}
        known = {name: value for name, value in os.environ.items() if name not in _names(self.profile)}
        return CliAgent(self.profile, {**known, **given}, model=check.model)

    def files(self) -> dict[str, str]:
        """What the last step left in its workspace, bookkeeping aside."""
        found = [path for path in self.here.rglob("*") if path.is_file() and ".orchestrix" not in path.parts]
        return {str(path.relative_to(self.here)): path.read_text(errors="replace") for path in sorted(found)}

    def _execute(self, job: Job) -> Execute:
        return cast("Execute", _Execute(self.processes, job))  # such a program is never talked with


@dataclass(frozen=True, slots=True)
class _Execute:
    processes: Processes
    job: Job

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        purpose: str,  # noqa: ARG002 - part of the port
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        means: Means | None = None,
    ) -> ProcessResult:
        means = means or Means()
        spec = ProcessSpec(
            argv=tuple(argv),
            cwd=self.job.workspace,
            env={**environment.inherited(os.environ), **(env or {})},
            log=self.job.log,
            timeout_ms=self.job.contract.execution.attempt_timeout_ms,
            stdin=stdin,
            rights=Rights(readable=(self.job.private,), writable=means.writable),
            secrets=means.secrets,
            until=means.until,
        )
        return await self.processes.run(spec, on_start=lambda _who: None)


class _NoTools:
    async def call(self, tool: str, arguments: Mapping[str, object]) -> str:  # noqa: ARG002 - part of the port
        raise AssertionError(f"a program with a profile has its own tools, and asked the broker for {tool}")

    def offered(self) -> AbstractAsyncContextManager[Sequence[ToolOffer]]:
        return nullcontext(())


def _names(profile: Profile) -> set[str]:
    """The variables of the profile: those of the user must not reach a check, which would use them up."""
    return {*profile.environment.variables, *profile.environment.secrets}


def _contract(description: str, tools: tuple[str, ...]) -> Contract:
    return Contract(
        parent=Parent(run_id="check", step_idx=0, task_prompt="Try the program", goal_summary="Try the program"),
        step=StepText(title="Do what the script says", description=description),
        permissions=Permissions(allowed_tools=tools),
        execution=Execution(attempt_timeout_ms=_SECONDS * 1000, max_retries=0),
        sandbox="none",
        work=Work(agent="check"),
    )
