"""Facts about an agent that is talked with over the Agent Client Protocol: what it asked, was answered and told."""

from __future__ import annotations

from harness.model.events.fact import StepFact, line


class SessionOpened(StepFact):
    """The agent has answered and works in `mode`; None when it has no modes."""

    type = "acp.session_opened"
    attempt: int
    session_id: str
    program: str
    version: str
    mode: str | None

    @property
    def summary(self) -> str:
        return f"step {self.task} talks with {line(self.program)} {line(self.version)}".rstrip()


class _AboutCall(StepFact):
    """`tool_kind` and `paths` are the agent's words; a path inside the workspace is relative to it."""

    attempt: int
    call: str
    tool_kind: str
    title: str
    paths: list[str]

    @property
    def about(self) -> str:
        return line(f"{self.tool_kind} {' '.join(self.paths) or self.title}")


class PermissionAsked(_AboutCall):
    type = "permission.asked"

    @property
    def summary(self) -> str:
        return f"step {self.task} asks: {self.about}"


class PermissionAllowed(_AboutCall):
    type = "permission.allowed"

    @property
    def summary(self) -> str:
        return f"step {self.task} may: {self.about}"


class PermissionDenied(_AboutCall):
    type = "permission.denied"
    why: str

    @property
    def summary(self) -> str:
        return f"step {self.task} may not: {self.about} ({line(self.why)})"


class CallReported(_AboutCall):
    """A tool call as the agent reports it: once when it is first heard of, once when it has ended."""

    type = "acp.call_reported"
    status: str

    @property
    def summary(self) -> str:
        return f"step {self.task} {self.about}: {self.status.replace('_', ' ')}"


class PlanReported(StepFact):
    """What the agent says it will do, each entry with its status."""

    type = "acp.plan_reported"
    attempt: int
    entries: list[dict[str, str]]

    @property
    def summary(self) -> str:
        done = sum(entry["status"] == "completed" for entry in self.entries)
        now = next((entry["content"] for entry in self.entries if entry["status"] == "in_progress"), "")
        return f"step {self.task} plan: {done} of {len(self.entries)} done" + (f", now {line(now)}" if now else "")
