"""What the agent tells of its work: shown as it comes, logged in short, and held against the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp import schema
from pydantic import ValidationError

from harness.agents.acp.calls import ENDED, Call, Calls
from harness.agents.acp.rules import Rules
from harness.errors import ContractViolation, ToolFailed
from harness.model import events as ev
from harness.model import limits
from harness.ports import Channel, Job

_UPDATE = "session/update"
_UNKNOWN = "union_tag_invalid"


class Updates:
    """Takes notifications in the order in which they come; raises what ends the session."""

    def __init__(self, job: Job, channel: Channel, rules: Rules, calls: Calls) -> None:
        self._job = job
        self._channel = channel
        self._rules = rules
        self._calls = calls
        self._told: dict[str, str] = {}
        self._plan: list[dict[str, str]] = []
        self._plans = 0
        self.session: str | None = None
        self.mode: str | None = None
        self.cost: schema.Cost | None = None

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """A notification; those that are no part of the protocol as we know it are left alone."""
        if method != _UPDATE:
            return
        try:
            told = schema.SessionNotification.model_validate(params)
        except ValidationError as error:
            if error.errors()[0]["type"] == _UNKNOWN:  # a newer protocol has more to tell
                return
            raise ToolFailed(f"the agent sent a malformed update: {error.errors()[0]['msg']:.200}") from error
        if self.session is not None and told.session_id != self.session:
            raise ToolFailed(f"the agent tells of a session {told.session_id!r:.80} that is not open")
        self._take(told.update)

    def _take(self, update: Any) -> None:
        if isinstance(update, schema.ToolCallStart | schema.ToolCallProgress):
            self._call(update)
        elif isinstance(update, schema.AgentPlanUpdate):
            self._planned(update)
        elif isinstance(update, schema.CurrentModeUpdate):
            self._mode(update.current_mode_id)
        elif isinstance(update, schema.UsageUpdate):
            self.cost = update.cost or self.cost
        elif isinstance(update, schema.AgentMessageChunk) and isinstance(update.content, schema.TextContentBlock):
            self._channel.note(update.content.text)

    def _call(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> None:
        if self.session is None:
            raise ToolFailed("the agent tells of a tool call before it was asked to do anything")
        call = self._calls.learn(update)
        if call.id not in self._told or (call.status in ENDED and self._told[call.id] not in ENDED):
            self._job.note(ev.CallReported, **self.about(call), status=call.status)
            self._channel.note(f"\n[{call.kind}] {call.title}: {call.status.replace('_', ' ')}\n")
            self._told[call.id] = call.status
        if call.status == "completed":
            self.check(call)

    def check(self, call: Call) -> None:
        """Raises ContractViolation if the call was made without asking, or against the answer, and is forbidden."""
        why = "" if call.allowed else self._rules.breach(call.kind, call.paths)
        if why:
            how = "without asking" if call.allowed is None else "although it was denied"
            raise ContractViolation(
                f"the agent did this {how}: {call.kind} {call.title!r:.120}: {why}",
                hint="choose a mode in which the agent asks, or widen the contract",
            )

    def check_unfinished(self) -> None:
        """At the end of the turn, a call that began counts as made."""
        for call in self._calls.unfinished():
            self.check(call)

    def about(self, call: Call) -> dict[str, Any]:
        """The fields that every fact about a call carries."""
        paths = [self._rules.shown(path)[: limits.TOOL_ARGUMENT_CHARS] for path in call.paths[: limits.TOLD_PATHS]]
        return {
            "attempt": self._job.attempt,
            "call": call.id,
            "tool_kind": call.kind,
            "title": call.title,
            "paths": paths,
        }

    def _planned(self, update: schema.AgentPlanUpdate) -> None:
        entries = [
            {"content": entry.content[: limits.TITLE_CHARS], "status": entry.status}
            for entry in update.entries[: limits.PLAN_ENTRIES]
        ]
        if entries != self._plan and self._plans < limits.PLAN_REPORTS:
            self._plan, self._plans = entries, self._plans + 1
            self._job.note(ev.PlanReported, attempt=self._job.attempt, entries=entries)

    def _mode(self, mode: str) -> None:
        if self.mode is not None and mode != self.mode:
            raise ContractViolation(
                f"the agent left the mode {self.mode} for {mode!r:.80}", hint="it may then act without asking"
            )
