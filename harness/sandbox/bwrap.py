"""Bubblewrap: own PID namespace, everything read-only except what the step may write, own /tmp, /dev and /proc."""

from __future__ import annotations

import os
import resource
from functools import cache

from harness import namespace
from harness.model.process import ProcessLimits, ProcessSpec
from harness.sandbox import mounts, rlimits, tree
from harness.sandbox.child import Child, memory_file
from harness.sandbox.conversation import Line
from harness.sandbox.output import Transcript
from harness.sandbox.process import Door

_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session")
# As root bwrap keeps every capability, and with CAP_SYS_ADMIN a read-only mount is one `mount -o remount,rw` away.
# The few that stay let root's programs change users and owners among what they may write anyway.
_ROOT_CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
_ANYBODY_WRITES = 0o222
# The first program inside: sets limits, says that everything is in place, waits for the word, becomes the program.
# Descriptors as Child gives them. A coordinator that died before the word is an end of file, and nothing runs.
_GATE = """
for limit in $1; do ulimit "${limit%=*}" "${limit#*=}"; done
[ "$2" = 0 ] || { ulimit -u "$2" || ulimit -p "$2"; } 2>/dev/null
talks=$3
shift 3
echo ready >&0
read -r word || exit 125
[ "$talks" ] || exec "$@" <&1 >&2
exec "$@"
"""


@cache
def base_options() -> tuple[str, ...]:
    """What every use of bwrap has in common, the probe included."""
    options = [*_NAMESPACES, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_sealed_proc()]
    if os.getuid() == 0:
        options += ["--cap-drop", "ALL"]
        for capability in _ROOT_CAPABILITIES:
            options += ["--cap-add", capability]
    return tuple(options)


def _sealed_proc() -> list[str]:
    """Makes read-only what a fresh /proc offers for writing besides processes: sysctls, triggers, settings of drivers.

    The kernel asks for user 0 there, not for a capability, so that root needs a read-only mount to be kept out.
    """
    words = []
    with os.scandir("/proc") as entries:
        for entry in sorted(entries, key=lambda found: found.name):
            if entry.name.isdigit() or entry.is_symlink():
                continue
            if entry.is_dir() or entry.stat().st_mode & _ANYBODY_WRITES:
                words += ["--ro-bind-try", entry.path, entry.path]
    return words


class Bwrap(Door):
    """Killing the namespace's first process makes the kernel kill all others before that one is gone."""

    name = "bwrap"
    protects_parent = True

    def __init__(self, why: str, program: str) -> None:
        super().__init__(why)
        self._program = program

    def _start(self, spec: ProcessSpec, transcript: Transcript, line: Line | None) -> Child:
        options = [*base_options(), *mounts.options(spec), *_environment(spec)]
        with memory_file(os.fsencode("\0".join((*options, "")))) as listed:
            gate = ("/bin/sh", "-c", _GATE, "gate", *_gate_limits(spec.limits), "talks" if line else "")
            argv = [*namespace.entry(spec.cwd), self._program, "--args", str(listed), "--", *gate, *spec.argv]
            if line is None:
                return Child(argv, spec.stdin, transcript, (listed,))
            # Once it has heard the word, nothing but the program listens there: the control socket is its stdin.
            return Child(argv, line.sink, transcript, (listed,), (line.ours, line.theirs))

    def _is_ready(self, child: Child) -> None:
        for pid in tree.children(child.pid):
            child.anchor(pid)

    def _left_nothing(self, child: Child) -> bool:
        return child.gone

    async def _kill(self, child: Child) -> None:
        child.kill()
        await child.is_gone()


def _environment(spec: ProcessSpec) -> list[str]:
    options = ["--clearenv"]
    for name, value in {**spec.env, "TMPDIR": mounts.TMP, "PWD": str(spec.cwd)}.items():
        options += ["--setenv", name, value]
    return options


def _gate_limits(limits: ProcessLimits) -> tuple[str, str]:
    """`ulimit` options; file sizes and core dumps are counted in 512-byte blocks, memory in KiB."""
    units = {resource.RLIMIT_CORE: ("-c", 512), resource.RLIMIT_FSIZE: ("-f", 512), resource.RLIMIT_AS: ("-v", 1024)}
    chosen = rlimits.wanted(limits)
    plain = [f"{units[kind][0]}={value // units[kind][1]}" for kind, value in chosen.items() if kind in units]
    return " ".join(plain), str(chosen.get(resource.RLIMIT_NPROC, 0))
