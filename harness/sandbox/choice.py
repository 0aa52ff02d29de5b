"""Which confinement this machine gives: asked once, by really using it."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import Literal

from harness.errors import EnvironmentProblem
from harness.sandbox.bwrap import Bwrap, base_options
from harness.sandbox.process import Door
from harness.sandbox.subreaper import Subreaper

Mode = Literal["auto", "bwrap", "none"]
_PROBE_SECONDS = 10


def why_not_bwrap() -> str:
    """Why bubblewrap cannot be used here; empty when it works."""
    program = shutil.which("bwrap")
    return _why_not(program) if program else "the program bwrap is not installed"


def begin(mode: Mode) -> None:
    """Starts to find out what `choose` will ask, and does not wait: who has other work to do first saves the time."""
    program = None if mode == "none" else shutil.which("bwrap")
    if program is not None:
        _begun(program)


@cache
def _begun(program: str) -> subprocess.Popen[bytes] | OSError:
    try:
        return subprocess.Popen(
            [program, *base_options(), "--tmpfs", "/tmp", "--", "/bin/sh", "-c", "exit 0"],  # noqa: S108 - inside the sandbox
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={},
        )
    except OSError as error:
        return error


@cache
def _why_not(program: str) -> str:
    trial = _begun(program)
    if isinstance(trial, OSError):
        return f"bwrap does not run: {trial}"
    with trial:
        try:
            said = trial.communicate(timeout=_PROBE_SECONDS)[1]
        except subprocess.TimeoutExpired as error:
            trial.kill()
            return f"bwrap does not run: {error}"
    if trial.returncode:
        return f"bwrap does not work here: {said.decode('utf-8', 'replace').strip()[:300]}"
    return ""


def choose(mode: Mode) -> Door:
    """The confinement for a mode; raises EnvironmentProblem when bwrap was asked for and does not work."""
    if mode == "none":
        return Subreaper("asked for: steps may write wherever the user may")
    program, problem = shutil.which("bwrap"), why_not_bwrap()
    if program and not problem:
        return Bwrap("bubblewrap works here", program)
    if mode == "bwrap":
        raise EnvironmentProblem(
            f"the bwrap sandbox was asked for, but {problem}",
            hint="install bubblewrap, allow unprivileged user namespaces, or use `--sandbox none`",
        )
    return Subreaper(problem)
