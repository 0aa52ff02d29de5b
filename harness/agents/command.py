"""The agent that is any program: the prompt on its stdin, everything else in files and variables."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from harness import namespace
from harness.model.process import Ending, ProcessResult
from harness.model.verdict import Failure, Reason
from harness.ports import Execute, Job, Outcome, Tools
from harness.tools.inside import Inside
from harness.tools.permission import allows

_TEMPORARY_FAILURE = 75  # EX_TEMPFAIL of sysexits.h
_RATE_LIMITED = re.compile(r"^ORCHESTRIX_RATE_LIMITED(?: retry_after=(\d{1,7}(?:\.\d+)?))?\s*$", re.MULTILINE)
_USUAL_REPORT = re.compile(r"\.orchestrix/step-[^/]+")
_ENDINGS = {
    Ending.TIMEOUT: Reason.TIMEOUT,
    Ending.INACTIVITY: Reason.INACTIVITY_TIMEOUT,
    Ending.LIMIT: Reason.LIMIT_EXCEEDED,
    Ending.NOT_FOUND: Reason.AGENT_MISSING,
}


class CommandAgent:
    """Runs the argument list of the step, or its own when settings gave it one and a name."""

    def __init__(self, argv: Sequence[str] | None = None) -> None:
        self._argv = None if argv is None else tuple(argv)

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:  # noqa: ARG002 - it has its own means
        """Runs the program in the workspace; its exit code is one voice among others, never the verdict."""
        argv = self._argv or job.contract.work.command
        refusal = _refusal(job, argv)
        if refusal is not None or argv is None:
            return Outcome(refusal)
        prompt = job.prompt.encode("utf-8", "replace")
        result = await execute(argv, purpose="agent", stdin=prompt, env=_prepare(job, prompt))
        return Outcome(failure_of(argv[0], result), exit_code=result.exit_code)


def _refusal(job: Job, argv: Sequence[str] | None) -> Failure | None:
    if not argv:
        return Failure(Reason.CONTRACT_REFUSED, "the contract names no command", hint="give the step a `command`")
    if not allows(job.contract, "run"):
        return Failure(
            Reason.CONTRACT_REFUSED,
            f"step {job.step} may not run programs, but its agent is one",
            hint="add `run` or `shell` to the step's `allowed_tools`",
        )
    return None


def _prepare(job: Job, prompt: bytes) -> dict[str, str]:
    """Writes the prompt and the contract beside the workspace, and names them."""
    prompt_file, contract_file = f"{job.private}/prompt.md", f"{job.private}/contract.json"
    _write(prompt_file, prompt)
    _write(contract_file, job.contract.to_json().encode())
    report = job.contract.report_path
    _make_directory_for(job.workspace, report)
    return {
        **job.env,
        "ORCHESTRIX_PROMPT_FILE": prompt_file,
        "ORCHESTRIX_CONTRACT_FILE": contract_file,
        "ORCHESTRIX_REPORT_FILE": f"{job.workspace}/{report}",
        "ORCHESTRIX_RUN_ID": job.contract.parent.run_id,
        "ORCHESTRIX_STEP_IDX": str(job.contract.parent.step_idx),
        "ORCHESTRIX_ATTEMPT": str(job.attempt),
        "ORCHESTRIX_CANDIDATE": str(job.candidate),
    }


def _write(path: str, data: bytes) -> None:
    """Two of these precede every program, so without a file object."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _make_directory_for(workspace: Path, report: str) -> None:
    """For a report where it usually lies this is one call, which follows no link at its end."""
    if _USUAL_REPORT.fullmatch(report):
        try:
            os.mkdir(f"{namespace.seen(workspace)}/.orchestrix")  # noqa: PTH102 - as in _write
        except OSError:  # something is there already, perhaps a link: it is walked with care
            pass
        else:
            return
    Inside(workspace).make_directory_for(report)


def failure_of(program: str, result: ProcessResult) -> Failure | None:
    """The cause of a program's bad end; None when it exited with 0."""
    if result.ok:
        return None
    if result.ending in _ENDINGS:
        words = result.message or f"{program:.80} was ended: {str(result.ending).replace('_', ' ')}"
        return Failure(_ENDINGS[result.ending], words, hint=_HINTS.get(result.ending, ""))
    limited = _RATE_LIMITED.search(result.output_tail)
    if limited or result.exit_code == _TEMPORARY_FAILURE:
        after = float(limited[1]) if limited and limited[1] else None
        return Failure(
            Reason.RATE_LIMITED,
            f"{program:.80} asks to be tried again later",
            retry_after_ms=None if after is None else int(after * 1000),
        )
    tail = result.output_tail.strip()[-1000:]
    said = f"; it said last: {tail}" if tail else " and said nothing"
    return Failure(Reason.AGENT_FAILED, f"{program:.80} exited with {result.exit_code}{said}")


_HINTS = {
    Ending.TIMEOUT: "raise the step's `timeout`, or make the step smaller",
    Ending.INACTIVITY: "raise the step's `inactivity_timeout`, or let the program say what it does",
    Ending.NOT_FOUND: "install the program or correct the command; the PATH that it is looked up in is the harness' own",
}
