"""Why a step ended as it did, and which exit code that is."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from harness.errors import Exit
from harness.model.late import dataclass


class Reason(StrEnum):
    """Close reasons: stable, machine-readable."""

    MERGED = "merged"
    AGENT_FAILED = "agent_failed"
    AGENT_MISSING = "agent_missing"
    SETUP_FAILED = "setup_failed"
    NO_CHANGES = "no_changes"
    TIMEOUT = "timeout"
    INACTIVITY_TIMEOUT = "inactivity_timeout"
    LIMIT_EXCEEDED = "limit_exceeded"
    CONTENT_REFUSED = "content_refused"
    MERGE_CONFLICT = "merge_conflict"
    OWNERSHIP_VIOLATION = "ownership_violation"
    CHECK_FAILED = "check_failed"
    CRITERION_FAILED = "criterion_failed"
    TOOL_DENIED = "tool_denied"
    CONTRACT_REFUSED = "contract_refused"
    REPLAY_MISMATCH = "replay_mismatch"
    PARENT_TAMPERED = "parent_tampered"
    PARENT_CHANGED = "parent_changed"
    DEPENDENCY_FAILED = "dependency_failed"
    STOPPED = "stopped"
    RECOVERIES_EXHAUSTED = "recoveries_exhausted"
    CANCELLED = "cancelled"
    RATE_LIMITED = "rate_limited"
    NESTED_FAILED = "nested_failed"
    AUTH_FAILED = "auth_failed"
    CONTEXT_FULL = "context_full"
    BAD_RESPONSE = "bad_response"
    MAX_DEPTH_EXCEEDED = "max_depth_exceeded"
    MAX_STEPS_EXCEEDED = "max_steps_exceeded"
    CYCLE_DETECTED = "cycle_detected"
    ALLOWLIST_VIOLATION = "allowlist_violation"


_EXIT = {
    Reason.MERGED: Exit.OK,
    Reason.AGENT_MISSING: Exit.ENVIRONMENT,
    Reason.AUTH_FAILED: Exit.ENVIRONMENT,
    Reason.TIMEOUT: Exit.TIMEOUT,
    Reason.INACTIVITY_TIMEOUT: Exit.TIMEOUT,
    Reason.MERGE_CONFLICT: Exit.CONFLICT,
    Reason.OWNERSHIP_VIOLATION: Exit.VIOLATION,
    Reason.CHECK_FAILED: Exit.VIOLATION,
    Reason.CRITERION_FAILED: Exit.VIOLATION,
    Reason.TOOL_DENIED: Exit.VIOLATION,
    Reason.CONTRACT_REFUSED: Exit.VIOLATION,
    Reason.REPLAY_MISMATCH: Exit.VIOLATION,
    Reason.PARENT_TAMPERED: Exit.VIOLATION,
    Reason.PARENT_CHANGED: Exit.VIOLATION,
    Reason.MAX_DEPTH_EXCEEDED: Exit.VIOLATION,
    Reason.MAX_STEPS_EXCEEDED: Exit.VIOLATION,
    Reason.CYCLE_DETECTED: Exit.VIOLATION,
    Reason.ALLOWLIST_VIOLATION: Exit.VIOLATION,
    Reason.CANCELLED: Exit.SIGINT,
}

# Doing it again cannot help: the cause lies outside the attempt.
_FINAL = {
    Reason.AGENT_MISSING,
    Reason.AUTH_FAILED,
    Reason.CONTEXT_FULL,
    Reason.CONTRACT_REFUSED,
    Reason.REPLAY_MISMATCH,
    Reason.PARENT_TAMPERED,
    Reason.PARENT_CHANGED,
    Reason.MERGE_CONFLICT,
    Reason.DEPENDENCY_FAILED,
    Reason.STOPPED,
    Reason.CANCELLED,
    Reason.RECOVERIES_EXHAUSTED,
    Reason.NESTED_FAILED,
    Reason.MAX_DEPTH_EXCEEDED,
    Reason.MAX_STEPS_EXCEEDED,
    Reason.CYCLE_DETECTED,
    Reason.ALLOWLIST_VIOLATION,
}


def exit_code(reason: Reason) -> int:
    return _EXIT.get(reason, Exit.STEP_FAILED)


@dataclass(frozen=True, slots=True)
class Failure:
    """One cause: the reason, a sentence for people, and the paths it is about."""

    reason: Reason
    message: str
    paths: tuple[str, ...] = ()
    hint: str = ""
    retry_after_ms: int | None = field(default=None)

    @property
    def retryable(self) -> bool:
        return self.reason not in _FINAL
