"""A stage for agents: a workspace, the real door, the real broker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.agents import prompt
from harness.model.contract import (
    Contract,
    ContractAction,
    Execution,
    Limits,
    Ownership,
    Parent,
    Permissions,
    StepText,
    Work,
)
from harness.model.events import StepFact
from harness.model.process import Means, ProcessResult, ProcessSpec, Rights
from harness.ports import Agent, Job, OnOutput, Outcome, Talk
from harness.sandbox import choice
from harness.tools.broker import Broker, Guard
from tests.sandbox.conftest import marker

__all__ = ["marker"]


def contract_for(
    *,
    tools: Sequence[str] = ("write_file", "run"),
    command: Sequence[str] | None = None,
    actions: Sequence[tuple[str, dict[str, Any]]] | None = None,
    timeout_ms: int = 30_000,
    inactivity_ms: int | None = None,
    owns: Sequence[str] | None = None,
) -> Contract:
    return Contract(
        parent=Parent(run_id="r1", step_idx=3, task_prompt="the goal", goal_summary="the goal"),
        step=StepText(title="the title", description="the description"),
        permissions=Permissions(allowed_tools=tuple(tools)),
        execution=Execution(attempt_timeout_ms=timeout_ms, max_retries=0),
        limits=Limits(inactivity_timeout_ms=inactivity_ms),
        ownership=Ownership(paths=None if owns is None else tuple(owns)),
        work=Work(
            agent="command" if command else "actions",
            command=None if command is None else tuple(command),
            actions=None if actions is None else tuple(ContractAction(tool=t, arguments=a) for t, a in actions),
        ),
    )


@dataclass
class StageExecute:
    """The `Execute` port without an engine: the real door, one log, no events."""

    root: Path
    contract: Contract

    def _spec(
        self, argv: Sequence[str], env: Mapping[str, str] | None, log: str = "log", stdin: bytes = b""
    ) -> ProcessSpec:
        return ProcessSpec(
            argv=tuple(argv),
            cwd=self.root / "workspace",
            env={"PATH": os.environ["PATH"], **(env or {})},
            log=self.root / log,
            timeout_ms=self.contract.execution.attempt_timeout_ms,
            stdin=stdin,
            inactivity_ms=self.contract.limits.inactivity_timeout_ms,
            rights=Rights(readable=(self.root / "private",)),
        )

    async def __call__(
        self, argv: Sequence[str], *, purpose: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        return await choice.choose("auto").run(self._spec(argv, env, stdin=stdin), on_start=lambda who: None)

    async def talk(
        self,
        argv: Sequence[str],
        talk: Talk,
        *,
        purpose: str,
        env: Mapping[str, str] | None = None,
        means: Means,
    ) -> ProcessResult:
        rights = Rights(readable=(self.root / "private",), writable=means.writable)
        spec = replace(self._spec(argv, env), rights=rights, secrets=means.secrets)
        return await choice.choose("auto").run(spec, on_start=lambda who: None, talk=talk)

    async def aside(
        self, argv: Sequence[str], *, name: str, on_output: OnOutput, env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        spec = self._spec(argv, env, log=f"log-{name}")
        return await choice.choose("auto").run(spec, on_start=lambda who: None, on_output=on_output)


@dataclass
class Stage:
    """Plays one attempt of an agent, as the engine would."""

    root: Path
    told: list[tuple[str, bool, bool]] = field(default_factory=list)
    facts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    noted: list[StepFact] = field(default_factory=list)
    guard: Guard | None = None

    def note(self, kind: type[StepFact], **values: object) -> None:
        self.noted.append(kind(sub_agent_id="s", step_idx=3, task="3", **values))
        self.facts.append((kind.type, values))

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def play(self, agent: Agent, contract: Contract) -> Outcome:
        return asyncio.run(self.perform(agent, contract))

    async def perform(self, agent: Agent, contract: Contract) -> Outcome:
        execute = StageExecute(self.root, contract)

        def on_tool(tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None:
            self.told.append((tool, allowed, ok))

        job = Job(
            contract=contract,
            attempt=2,
            workspace=self.workspace,
            prompt=prompt.render(contract),
            env={"GIVEN": "by the step"},
            private=self.root / "private",
            log=self.root / "log",
            note=self.note,
        )
        return await agent.perform(job, Broker(contract, self.workspace, execute, on_tool, guard=self.guard), execute)

    def files(self) -> dict[str, str]:
        found = [path for path in self.workspace.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.workspace)): path.read_text() for path in sorted(found)}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "private").mkdir()
    return Stage(tmp_path)
