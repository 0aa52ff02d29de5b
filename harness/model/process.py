"""Values at the process door: what is asked to run, who it was, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from harness.model import limits
from harness.model.late import dataclass


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What one process tree may use; 0 is no limit of ours."""

    output_head: int = limits.OUTPUT_HEAD_BYTES
    output_tail: int = limits.OUTPUT_TAIL_BYTES
    processes: int = limits.STEP_PROCESSES
    memory_bytes: int = limits.STEP_MEMORY_BYTES
    file_bytes: int = limits.STEP_BYTES


@dataclass(frozen=True, slots=True)
class Rights:
    """What a sandbox leaves writable or hides; everything else is readable. Network and secrets will join here.

    `readable` names what must stay visible even where the sandbox puts an empty directory of its own (such as /tmp).
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Means:
    """What one program of a step gets besides the step's own rights.

    `until` is shown every whole line of output; once it says True the program has given its result, and is ended if
    it lingers. `secrets` are values that never reach the log.
    """

    writable: tuple[Path, ...] = ()
    secrets: tuple[str, ...] = ()
    until: Callable[[bytes], bool] | None = None


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """An argument list with everything it is given; nothing of the coordinator's environment leaks in."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    timeout_ms: int
    stdin: bytes = b""
    inactivity_ms: int | None = None
    rights: Rights = field(default_factory=Rights)
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    secrets: tuple[str, ...] = ()
    until: Callable[[bytes], bool] | None = None


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process beyond its pid: pids are reused, start times within one boot are not."""

    pid: int
    start_time: str
    boot_id: str


class Ending(StrEnum):
    EXITED = "exited"
    TIMEOUT = "timeout"
    INACTIVITY = "inactivity_timeout"
    LIMIT = "limit_exceeded"
    NOT_FOUND = "not_found"
    ANSWERED = "answered"  # it had said what it was asked; nobody waited for it to exit


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process tree ended; when this exists, nothing of the tree is alive."""

    ending: Ending
    exit_code: int | None
    duration_ms: int
    output_tail: str
    output_bytes: int
    truncated: bool
    sandbox: str
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.ending is Ending.EXITED and self.exit_code == 0
