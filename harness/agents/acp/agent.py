"""The agent that is any program speaking the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Mapping

from harness.agents.acp.surroundings import Surroundings
from harness.agents.command import failure_of
from harness.config.acp_program import AcpProgram
from harness.errors import ContractViolation, ToolFailed
from harness.model.process import Ending, ProcessResult
from harness.model.verdict import Failure, Reason
from harness.ports import Execute, Job, Outcome, Tools

NEEDS = "agent-client-protocol"


def installed() -> bool:
    """Whether the protocol's library is there, without loading it."""
    return importlib.util.find_spec("acp") is not None


class AcpAgent:
    """Talks with the program behind the process door; its own word ends the attempt, not its exit."""

    def __init__(self, program: AcpProgram, environ: Mapping[str, str]) -> None:
        self._program = program
        self._environ = environ

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:
        """Holds one session with one prompt; refuses when the library is missing."""
        if not installed():
            return Outcome(
                Failure(
                    Reason.AGENT_MISSING,
                    f"the library {NEEDS} is not installed",
                    hint='install it with `pip install "orchestrix-harness[acp]"`',
                )
            )
        # In a thread: loading takes a second, and other steps go on meanwhile.
        sessions = await asyncio.to_thread(importlib.import_module, "harness.agents.acp.session")
        around = Surroundings.make(self._program, job, self._environ)
        session = sessions.Session(self._program, around.job, tools, execute)
        argv = self._program.command
        try:
            result = await execute.talk(argv, session.talk, purpose="agent", env=around.env, means=around.means)
        except ContractViolation as error:
            return around.masked(Failure(Reason.TOOL_DENIED, error.message, hint=error.hint), session.usage)
        except ToolFailed as error:
            return around.masked(Failure(Reason.AGENT_FAILED, error.message, hint=error.hint), session.usage)
        finally:
            await session.close()
        failure = session.failure or (None if session.over else _unfinished(argv[0], result))
        return around.masked(failure, session.usage, result.exit_code)


def _unfinished(program: str, result: ProcessResult) -> Failure:
    """The program ended, or had to be ended, in the middle of its turn."""
    failure = failure_of(program, result)
    if failure is not None and result.ending is not Ending.ANSWERED:
        return failure
    tail = result.output_tail.strip()[-1000:]
    said = f"; it said last: {tail}" if tail else ""
    return Failure(Reason.AGENT_FAILED, f"{program:.80} left before its turn was over{said}")
