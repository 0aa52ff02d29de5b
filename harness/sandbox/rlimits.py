"""Limits that the kernel holds for each process of a step."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from harness.model.process import ProcessLimits


def wanted(limits: ProcessLimits) -> dict[int, int]:
    """Resource -> value, never above what the coordinator itself has; a limit of 0 is left out."""
    chosen = {resource.RLIMIT_CORE: 0}
    if limits.file_bytes:
        chosen[resource.RLIMIT_FSIZE] = limits.file_bytes
    if limits.memory_bytes:
        chosen[resource.RLIMIT_AS] = limits.memory_bytes
    if limits.processes and os.getuid():
        # The kernel counts all threads of the user, not those of the step: what runs already is added. Root is exempt.
        chosen[resource.RLIMIT_NPROC] = limits.processes + _running_threads()
    return {kind: _below_hard(kind, value) for kind, value in chosen.items()}


def _running_threads() -> int:
    running = Path("/proc/loadavg").read_text().split()[3]
    return int(running.split("/")[1])


def _below_hard(kind: int, value: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
