"""A recording: what the agents of a run did, exact to the byte, so that the plan can be done again without them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from harness.model import limits
from harness.model.changes import Edit
from harness.model.contract import Contract
from harness.model.verdict import Failure, Reason

_PLAIN = "/ ,+@=~()[]"
Oid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Mode = Literal["100644", "100755", "120000"]

# What an agent, or the nested run in its place, says of itself; every other failure is a verdict, and the harness judges anew.
_OWN_FAILURES = {
    Reason.AGENT_FAILED,
    Reason.AGENT_MISSING,
    Reason.TIMEOUT,
    Reason.INACTIVITY_TIMEOUT,
    Reason.LIMIT_EXCEEDED,
    Reason.TOOL_DENIED,
    Reason.CONTRACT_REFUSED,
    Reason.RATE_LIMITED,
    Reason.NESTED_FAILED,
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class RecordedEdit(_Part):
    """An `Edit` in JSON: names are bytes to git, so what is no plain ASCII is spelled as in a URL."""

    path: str
    mode: Mode | None = None
    blob: Oid | None = None

    @classmethod
    def of(cls, edit: Edit) -> RecordedEdit:
        path = quote_from_bytes(edit.path, safe=_PLAIN)
        return cls.model_validate({"path": path, "mode": edit.mode, "blob": edit.blob})

    @property
    def edit(self) -> Edit:
        return Edit(unquote_to_bytes(self.path), self.mode, self.blob)


class Attempt(_Part):
    """One finished attempt: the tree it began with, what it changed, and what its agent said."""

    start_tree: Oid
    tree: Oid | None = None
    edits: tuple[RecordedEdit, ...] = ()
    reason: Reason | None = None
    message: str = ""
    paths: tuple[str, ...] = ()
    exit_code: int | None = None
    usage: dict[str, Any] = Field(default_factory=dict)
    account: str = ""
    criteria: tuple[dict[str, str], ...] = ()
    exceptions: dict[str, str] = Field(default_factory=dict)
    log: str | None = None

    @property
    def failure(self) -> Failure | None:
        """What the agent itself failed with; a limit that it ran into then is no reason to wait now."""
        if self.reason not in _OWN_FAILURES:
            return None
        pause = 0 if self.reason is Reason.RATE_LIMITED else None
        return Failure(self.reason, self.message, self.paths, retry_after_ms=pause)

    def report(self) -> str:
        """The agent's account in the form in which it is read."""
        front = {
            "criteria": [{**item, "met": _TRUTH.get(item.get("met", ""), item.get("met"))} for item in self.criteria],
            "ownership_exceptions": [{"path": path, "reason": why} for path, why in self.exceptions.items()],
        }
        lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in front.items() if value]
        return "\n".join(["---", *lines, "---", self.account, ""]) if lines or self.account else ""


class Step(_Part):
    """What was done for one step of the plan, in the order of its attempts."""

    title: str
    contract: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    attempts: tuple[Attempt, ...] = ()


class Recording(_Part):
    format: Literal[1] = 1
    run: str
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=limits.PLAN_STEPS)]

    def misfit(self, contracts: Sequence[Contract]) -> str:
        """Why these contracts are not the recorded ones, as a sentence; empty when they are."""
        if len(contracts) != len(self.steps):
            return f"it holds {len(self.steps)} steps, the plan has {len(contracts)}"
        for idx, (recorded, contract) in enumerate(zip(self.steps, contracts, strict=True)):
            if recorded.title != contract.step.title:
                return f"its step {idx} is {recorded.title!r}, the plan's is {contract.step.title!r}"
            if recorded.contract != digest(contract):
                return f"step {idx} ({recorded.title!r}) was recorded under another contract"
        return ""


def digest(contract: Contract) -> str:
    """Names what was asked and allowed, wherever, in which role and however confined it is done."""
    body = contract.model_dump(mode="json", exclude={"parent": {"run_id"}, "sandbox": True, "caps": True})
    body["persona"] = None  # as in recordings that were made before contracts had one
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


_TRUTH = {"True": True, "False": False}
