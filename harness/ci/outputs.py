"""The job's outputs for later steps of a workflow, in a form in which no value can add another output."""

from __future__ import annotations

import secrets

from harness.ci.result import Result, Verdict


def values(result: Result, report_dir: str) -> dict[str, str]:
    """The outputs by name; steps are counted."""
    return {
        "status": result.status,
        "run_id": result.state.run_id if result.state else "",
        "branch": result.branch,
        "merged_steps": str(result.count(Verdict.PASSED)),
        "failed_steps": str(len(result.cases) - result.count(Verdict.PASSED)),
        "report_dir": report_dir,
    }


def render(named: dict[str, str]) -> str:
    """Each value between delimiters that nobody could have guessed when the value was made."""
    return "".join(_block(name, value) for name, value in named.items())


def _block(name: str, value: str) -> str:
    delimiter = f"orchestrix_{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
