"""The agent's own account: text for people, and the few structured fields that the harness reads.

An account can only make an outcome worse (it admits a failure) or ask for an exception; it never makes one better.
"""

from __future__ import annotations

import os
import stat
from dataclasses import field
from pathlib import Path
from typing import Any

from harness import namespace
from harness.errors import MACHINE_FAULTS
from harness.model import limits
from harness.model.late import dataclass

_FENCE = "---"


@dataclass(frozen=True, slots=True)
class Account:
    text: str = ""
    admits_failure: str | None = None
    criteria: tuple[dict[str, Any], ...] = ()
    exceptions: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


def read(workspace: Path, report_path: str) -> Account:
    """What the agent wrote at the report path; links, devices and oversized files are not followed or read whole."""
    path = f"{namespace.seen(workspace)}/{report_path}"
    if os.path.islink(os.path.dirname(path)):  # noqa: PTH114, PTH120 - asked after every attempt: without objects for paths
        return Account(problem="the report's directory is a symbolic link; it was not read")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return Account()
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return Account(problem=f"the report could not be read: {error.strerror}")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return Account(problem="the report is not a regular file; it was not read")
    with os.fdopen(handle, "rb") as file:
        raw = file.read(limits.REPORT_BYTES + 1)
    if len(raw) > limits.REPORT_BYTES:
        return Account(
            text=_clean(raw[: limits.ACCOUNT_CHARS].decode("utf-8", "replace")), problem="the report is oversized"
        )
    return parse(raw.decode("utf-8", "replace"))


def parse(text: str) -> Account:
    """The account in a report's text; a front matter that does not parse is a problem, not an error."""
    lines = text.split("\n")
    if lines[0].strip() != _FENCE:
        return Account(text=_clean(text))
    end = next((n for n, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), None)
    if end is None:
        return Account(text=_clean(text), problem="the report's front matter has no end")
    body = _clean("\n".join(lines[end + 1 :]))
    try:
        front = _load("\n".join(lines[1:end]))
    except ValueError as error:
        return Account(text=body, problem=f"the report's front matter does not parse: {error}")
    return Account(
        text=body,
        admits_failure=_failure(front),
        criteria=tuple(item for item in _list(front, "criteria") if isinstance(item, dict)),
        exceptions={
            item["path"]: item["reason"].strip()
            for item in _list(front, "ownership_exceptions")
            if isinstance(item, dict)
            and isinstance(item.get("path"), str)
            and isinstance(item.get("reason"), str)
            and item["reason"].strip()
        },
    )


def _load(text: str) -> dict[str, Any]:
    """Read as strictly as a plan: bounded depth and size, no tags, no surprise; raises ValueError."""
    from harness.config import tree, yaml_tokens  # noqa: PLC0415 - only steps whose agent wrote front matter pay for it

    try:
        found = tree.build(yaml_tokens.tokens(text))
    except tree.Fault as fault:
        raise ValueError(f"line {fault.place.line}: {fault.message}") from fault
    if found.faults:
        raise ValueError(f"line {found.faults[0].place.line}: {found.faults[0].message}")
    if found.data is None:
        return {}
    if not isinstance(found.data, dict):
        raise ValueError("it is not a mapping")  # noqa: TRY004 - one kind of error for the caller
    return found.data


def _list(front: dict[str, Any], name: str) -> list[Any]:
    value = front.get(name)
    return value if isinstance(value, list) else []


def _failure(front: dict[str, Any]) -> str | None:
    status = str(front.get("status", "")).strip().lower()
    if status in {"failed", "failure", "blocked", "error", "incomplete"}:
        return (
            f"the agent reports {status}: {str(front.get('summary') or front.get('reason') or 'no reason given')[:500]}"
        )
    return None


def _clean(text: str) -> str:
    kept = "".join(char for char in text if char in "\n\t" or char.isprintable())
    return kept.strip()[: limits.ACCOUNT_CHARS]
