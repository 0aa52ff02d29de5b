"""From a contract to the prompt of its agent: one template, filled in one pass, with the plan's text fenced off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from harness.model import limits
from harness.model.contract import Contract
from harness.model.fence import fenced
from harness.model.plan import Command

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_TEMPLATE = Path(__file__).parent / "prompts" / "step.md"

_LEFT_OUT = (
    "\nNot all files are in it: those that you may change and some others are. `git ls-files` names all of them,"
    " `git show HEAD:PATH` shows one."
)


@cache
def _template() -> str:
    return _TEMPLATE.read_text(encoding="utf-8")


def render(contract: Contract, previous: str | None = None, sparse: bool = False) -> str:
    """The prompt for one attempt; `previous` is why the attempt before it failed, `sparse` that files are left out."""
    step, ownership = contract.step, contract.ownership
    values = {
        "left_out": _LEFT_OUT if sparse else "",
        "goal": fenced(contract.parent.task_prompt or "(not said)"),
        "number": str(contract.parent.step_idx),
        "title": fenced(step.title),
        "description": fenced(step.description) if step.description.strip() else "",
        "owns": "Any file of this worktree." if ownership.paths is None else fenced("\n".join(ownership.paths)),
        "criteria": _fenced_list(step.success_criteria),
        "checks": _fenced_list([_shown(check.command) for check in contract.checks]),
        "report": contract.report_path,
        "exceptions": "allowed" if ownership.exceptions_allowed else "not allowed",
        "previous": "" if previous is None else _retry(previous),
    }
    return _SLOT.sub(lambda slot: values[slot[1]], _template()).strip() + "\n"


def _retry(previous: str) -> str:
    return f"\n## The attempt before this one failed\nThe worktree is clean again. The failure was:\n{fenced(previous[-limits.OUTPUT_EXCERPT_CHARS :])}"


def _fenced_list(items: Sequence[str]) -> str:
    return fenced("\n".join(f"- {item}" for item in items)) if items else "None are written down."


def _shown(command: Command) -> str:
    return command if isinstance(command, str) else " ".join(command)
