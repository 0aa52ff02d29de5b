"""A stage for agents: a workspace, the real door, the real broker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.agents import prompt
from harness.model.contract import Contract, ContractAction, Execution, Limits, Parent, Permissions, StepText, Work
from harness.model.events import StepFact
from harness.model.process import ProcessResult, ProcessSpec, Rights
from harness.ports import Agent, Job, Outcome
from harness.sandbox import choice
from harness.tools.broker import Broker, Guard


def contract_for(
    *,
    tools: Sequence[str] = ("write_file", "run"),
    command: Sequence[str] | None = None,
    actions: Sequence[tuple[str, dict[str, Any]]] | None = None,
    timeout_ms: int = 30_000,
    inactivity_ms: int | None = None,
) -> Contract:
    return Contract(
        parent=Parent(run_id="r1", step_idx=3, task_prompt="the goal", goal_summary="the goal"),
        step=StepText(title="the title", description="the description"),
        permissions=Permissions(allowed_tools=tuple(tools)),
        execution=Execution(attempt_timeout_ms=timeout_ms, max_retries=0),
        limits=Limits(inactivity_timeout_ms=inactivity_ms),
        work=Work(
            agent="command" if command else "actions",
            command=None if command is None else tuple(command),
            actions=None if actions is None else tuple(ContractAction(tool=t, arguments=a) for t, a in actions),
        ),
    )


@dataclass
class Stage:
    """Plays one attempt of an agent, as the engine would."""

    root: Path
    told: list[tuple[str, bool, bool]] = field(default_factory=list)
    noted: list[StepFact] = field(default_factory=list)
    guard: Guard | None = None

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def play(self, agent: Agent, contract: Contract) -> Outcome:
        return asyncio.run(self.perform(agent, contract))

    async def perform(self, agent: Agent, contract: Contract) -> Outcome:
        async def execute(
            argv: Sequence[str], *, purpose: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
        ) -> ProcessResult:
            spec = ProcessSpec(
                argv=tuple(argv),
                cwd=self.workspace,
                env={"PATH": os.environ["PATH"], **(env or {})},
                log=self.root / "log",
                timeout_ms=contract.execution.attempt_timeout_ms,
                stdin=stdin,
                inactivity_ms=contract.limits.inactivity_timeout_ms,
                rights=Rights(readable=(self.root / "private",)),
            )
            return await choice.choose("auto").run(spec, on_start=lambda who: None)

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
            note=self._note,
        )
        return await agent.perform(job, Broker(contract, self.workspace, execute, on_tool, guard=self.guard), execute)

    def _note(self, kind: type[StepFact], **values: object) -> None:
        self.noted.append(kind(sub_agent_id="r1/3", step_idx=3, task="3", **values))

    def files(self) -> dict[str, str]:
        found = [path for path in self.workspace.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.workspace)): path.read_text() for path in sorted(found)}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "private").mkdir()
    return Stage(tmp_path)
