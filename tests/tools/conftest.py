"""A workspace with its broker, and a record of what was told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.model.contract import Contract, Execution, Parent, Permissions, StepText, Work
from harness.model.process import Ending, ProcessResult
from harness.tools.broker import Broker, Guard
from harness.tools.table import TOOLS


def contract_with(*tools: str) -> Contract:
    return Contract(
        parent=Parent(run_id="r1", step_idx=2, task_prompt="goal", goal_summary="goal"),
        step=StepText(title="t", description=""),
        permissions=Permissions(allowed_tools=tools),
        execution=Execution(attempt_timeout_ms=1000, max_retries=0),
        work=Work(agent="actions"),
    )


_DONE = ProcessResult(Ending.EXITED, 0, 1, "out\n", 4, truncated=False, sandbox="bwrap")


@dataclass
class Desk:
    """A broker that records; `result` is what programs end with."""

    workspace: Path
    tools: tuple[str, ...] = tuple(TOOLS)
    guard: Guard | None = None
    contract: Contract | None = None
    result: ProcessResult = _DONE
    told: list[tuple[Any, ...]] = field(default_factory=list)
    executed: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def call(self, tool: str, **arguments: Any) -> str:
        return asyncio.run(self.broker().call(tool, arguments))

    def broker(self) -> Broker:
        contract = self.contract or contract_with(*self.tools)
        return Broker(contract, self.workspace, self._execute, self._on_tool, guard=self.guard)

    async def _execute(
        self, argv: Sequence[str], *, purpose: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        self.executed.append((tuple(argv), purpose))
        return self.result

    def _on_tool(self, tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None:
        self.told.append((tool, dict(arguments), allowed, ok, message))

    def files(self) -> dict[str, str]:
        paths = [path for path in self.workspace.rglob("*") if path.is_file() and not path.is_symlink()]
        return {str(path.relative_to(self.workspace)): path.read_text() for path in sorted(paths)}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Desk(workspace)
