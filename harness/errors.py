"""Every error that the harness raises on purpose.

OrchestrixError                 exit  retry class
├── UsageError                   2    terminal   the call itself is wrong
│   └── PlanInvalid              2    terminal   the plan file is wrong; carries every problem with its place
├── NotFound                     2    terminal   no such run, step, branch
├── EnvironmentProblem           3    terminal   git, sandbox, agent or repository is not usable
│   ├── GitFailed                3    terminal   a git call of the harness itself failed
│   ├── StoreFailed              3    retryable  the store could not be read or written; nothing acted after it
│   │   └── StoreCorrupt         3    escalate   the log does not verify
│   ├── ConfigInvalid            3    terminal   a settings file is wrong
│   └── SharedInstall            3    terminal   a linked or copied package leads back to the checkout
├── RefMoved                     1    retryable  a compare-and-swap lost
├── LandingRefused               4    escalate   the target cannot be fast-forwarded
├── ContractViolation            5    terminal   a tool, path or delegation outside the contract
├── SnapshotFailed               1    terminal   the files of one workspace cannot be taken; `kept` says where they stay
├── ToolFailed                   1    retryable  an allowed tool did not do what was asked
├── ModelFailed                  1    retryable  a language model gave no usable answer; `kind` says why
├── PlanningFailed               1    escalate   a model gave no valid plan; carries every problem
├── IllegalTransition            5    terminal   a lifecycle step that the state machine does not know
├── Busy                         6    retryable  another coordinator holds the run
│   └── Fenced                   6    terminal   this coordinator lost its lease; it must stop
├── Interrupted                130    retryable  a signal ended the run
└── Internal                    70    escalate   a bug in the harness itself; only the edges (cli, ci) make one

An error says what happened, to which id, and what to do next (`hint`); `code` is stable and machine-readable.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

# The machine, not the call, is at fault: such an error stops a run, it never judges a step.
MACHINE_FAULTS = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.EIO,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.ENOMEM,
        errno.ESTALE,
    }
)


class Exit:
    """Exit codes, stable."""

    OK = 0
    STEP_FAILED = 1
    USAGE = 2
    ENVIRONMENT = 3
    CONFLICT = 4
    VIOLATION = 5
    BUSY = 6
    WAITING = 7
    INTERNAL = 70
    TIMEOUT = 124
    SIGINT = 130
    SIGTERM = 143


class Retry(StrEnum):
    """What a caller may do about an error."""

    RETRYABLE = "retryable"
    TERMINAL = "terminal"
    ESCALATE = "escalate"


class OrchestrixError(Exception):
    """The root: one line of message, one line of hint, a stable code and an exit status."""

    code: ClassVar[str] = "error"
    exit_code: int = Exit.STEP_FAILED
    retry: ClassVar[Retry] = Retry.TERMINAL

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def as_dict(self) -> dict[str, Any]:
        """The `error` object of the JSON envelope."""
        return {"code": self.code, "message": self.message, "hint": self.hint, **self.details}


class UsageError(OrchestrixError):
    code = "usage"
    exit_code = Exit.USAGE


class PlanInvalid(UsageError):
    """Carries `errors`: a list of dicts with file, line, column, field, message, suggestion."""

    code = "plan_invalid"


class NotFound(OrchestrixError):
    code = "not_found"
    exit_code = Exit.USAGE


class EnvironmentProblem(OrchestrixError):
    code = "environment"
    exit_code = Exit.ENVIRONMENT


class GitFailed(EnvironmentProblem):
    code = "git_failed"


class StoreFailed(EnvironmentProblem):
    code = "store_failed"
    retry = Retry.RETRYABLE


class StoreCorrupt(StoreFailed):
    code = "store_corrupt"
    retry = Retry.ESCALATE


class ConfigInvalid(EnvironmentProblem):
    code = "config_invalid"


class SharedInstall(EnvironmentProblem):
    """Carries `places`: what leads back."""

    code = "shared_install"


class RefMoved(OrchestrixError):
    code = "ref_moved"
    retry = Retry.RETRYABLE


class LandingRefused(OrchestrixError):
    code = "landing_refused"
    exit_code = Exit.CONFLICT
    retry = Retry.ESCALATE


class ContractViolation(OrchestrixError):
    code = "contract_violation"
    exit_code = Exit.VIOLATION


class SnapshotFailed(OrchestrixError):
    """Carries `kept`, the folder in which the files stay, and `overtime`: whether it only took too long."""

    code = "snapshot_failed"


class ToolFailed(OrchestrixError):
    code = "tool_failed"
    retry = Retry.RETRYABLE


class ModelFault(StrEnum):
    """Why a language model gave no usable answer."""

    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    BAD_RESPONSE = "bad_response"
    CONTEXT_FULL = "context_full"
    AUTH = "auth"


class ModelFailed(OrchestrixError):
    """Carries `kind`, `retry_after_ms` where the provider asked for a wait, and `usage`: what the failed answers cost.

    `usage` has the fields of `ports.Usage`, which stands above this layer; it is empty where no answer came.
    """

    code = "model_failed"
    retry = Retry.RETRYABLE

    def __init__(
        self, message: str, *, kind: ModelFault, hint: str = "", retry_after_ms: int | None = None, **details: Any
    ) -> None:
        super().__init__(message, hint=hint, kind=kind.value, retry_after_ms=retry_after_ms, **details)
        self.kind = kind
        self.retry_after_ms = retry_after_ms
        self.usage: Mapping[str, Any] = {}


class PlanningFailed(OrchestrixError):
    """Carries `problems`: everything that is wrong with the last plan that the model gave."""

    code = "planning_failed"
    retry = Retry.ESCALATE


class IllegalTransition(OrchestrixError):
    code = "illegal_transition"
    exit_code = Exit.VIOLATION


class Busy(OrchestrixError):
    code = "busy"
    exit_code = Exit.BUSY
    retry = Retry.RETRYABLE


class Fenced(Busy):
    code = "fenced"
    retry = Retry.TERMINAL


class Interrupted(OrchestrixError):
    """A signal ended the run; `exit_code` is 128 + the signal."""

    code = "interrupted"
    exit_code = Exit.SIGINT
    retry = Retry.RETRYABLE


class Internal(OrchestrixError):
    """A bug in the harness: no step failed, and the run can be resumed. Carries `crash_file`, and `run_id` if there is one.

    Below the command line and the CI job a bug stays the exception that it is, so that no handler of ours takes it for
    an error that was foreseen; the engine adds `WHILE_DRIVING` and the run as a note.
    """

    code = "internal"
    exit_code = Exit.INTERNAL
    retry = Retry.ESCALATE
    WHILE_DRIVING: ClassVar[str] = "while driving run "
