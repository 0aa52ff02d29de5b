"""Runs one program of a step: rights, environment, log and identity are added here, once for all callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from harness.engine import failpoints
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.changes import Workspace
from harness.model.contract import Contract
from harness.model.ids import TaskId
from harness.model.late import dataclass
from harness.model.process import Means, ProcessIdentity, ProcessLimits, ProcessResult, ProcessSpec, Rights
from harness.ports import OnOutput, Talk

_NO_MEANS = Means()


@dataclass(slots=True)
class StepExecute:
    """The `Execute` port for one workspace."""

    ctx: Context
    task: TaskId
    attempt: int
    workspace: Workspace
    contract: Contract
    log_name: str
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = Path(f"{self.ctx.run_dir}/logs/{self.log_name}.log")

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        purpose: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        means: Means | None = None,
    ) -> ProcessResult:
        return await self._run(self._spec(argv, purpose, env, means, stdin), purpose)

    async def talk(
        self,
        argv: Sequence[str],
        talk: Talk,
        *,
        purpose: str,
        env: Mapping[str, str] | None = None,
        means: Means | None = None,
        name: str | None = None,
    ) -> ProcessResult:
        spec = self._spec(argv, purpose, env, means)
        return await self._run(spec if name is None else self._beside(spec, name), purpose, talk)

    async def aside(
        self, argv: Sequence[str], *, name: str, on_output: OnOutput, env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        return await self._run(self._beside(self._spec(argv, "tool", env), name), "tool", on_output=on_output)

    def _beside(self, spec: ProcessSpec, name: str) -> ProcessSpec:
        """With a log of its own: two programs cannot write to one at once."""
        return replace(spec, log=self.log.with_name(f"{self.log_name}-{name}.log"))

    def _spec(
        self,
        argv: Sequence[str],
        purpose: str,
        env: Mapping[str, str] | None,
        means: Means | None = None,
        stdin: bytes = b"",
    ) -> ProcessSpec:
        limits, means = self.contract.limits, means or _NO_MEANS
        wall = {"setup": limits.setup_timeout_ms, "check": limits.check_timeout_ms}.get(
            purpose, self.contract.execution.attempt_timeout_ms
        )
        rights = self.ctx.parts.vcs.agent_rights(self.workspace)
        return ProcessSpec(
            argv=tuple(argv),
            cwd=self.workspace.path,
            env={**self.ctx.environment, **self.contract.work.env, **(env or {})},
            log=self.log,
            timeout_ms=wall,
            stdin=stdin,
            inactivity_ms=limits.inactivity_timeout_ms,
            rights=Rights(
                writable=(self.workspace.path, *rights.writable, *means.writable),
                readable=(self.workspace.private, *rights.readable),
            ),
            limits=ProcessLimits(processes=limits.processes, memory_bytes=limits.memory_bytes, file_bytes=limits.bytes),
            secrets=means.secrets,
            until=means.until,
        )

    async def _run(
        self, spec: ProcessSpec, purpose: str, talk: Talk | None = None, on_output: OnOutput | None = None
    ) -> ProcessResult:
        failpoints.hit(f"before:process.{purpose}")
        result = await self.ctx.parts.processes.run(
            spec, on_start=lambda who: self._started(who, purpose), talk=talk, on_output=on_output
        )
        failpoints.hit(f"after:process.{purpose}")
        return result

    def _started(self, who: ProcessIdentity, purpose: str) -> None:
        self.ctx.note(
            self.task,
            ev.ProcessStarted,
            attempt=self.attempt,
            pid=who.pid,
            start_time=who.start_time,
            boot_id=who.boot_id,
            sandbox=self.ctx.parts.processes.name,
            purpose=purpose,
        )
