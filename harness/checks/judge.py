"""Runs checks one after the other and says what each of them showed."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.contract import ContractCheck
from harness.model.late import dataclass
from harness.model.plan import Command
from harness.model.process import Ending, ProcessResult
from harness.ports import Execute


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: ContractCheck
    process: ProcessResult

    @property
    def ok(self) -> bool:
        return self.process.ok

    @property
    def cause(self) -> str:
        if self.process.ending is Ending.EXITED:
            return f"exit {self.process.exit_code}"
        return self.process.message or str(self.process.ending)


def argv(command: Command) -> list[str]:
    """A list is run as it is; one text is run by a shell, as its author wrote it."""
    return ["sh", "-c", command] if isinstance(command, str) else list(command)


def shown(command: Command) -> str:
    return command if isinstance(command, str) else " ".join(command)


async def run(checks: Sequence[ContractCheck], execute: Execute) -> list[CheckResult]:
    """Every check, also after one has failed: a person wants the whole picture."""
    return [CheckResult(check, await execute(argv(check.command), purpose="check")) for check in checks]
