"""Whether a program is installed, and which version it is."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from harness.agents.profile import Profile
from harness.errors import EnvironmentProblem
from harness.model.late import dataclass
from harness.model.process import ProcessSpec, Rights
from harness.ports import Processes
from harness.sandbox import environment

_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Detected:
    """Where the program is and what it calls itself; no path when it is not there."""

    path: str | None
    version: str
    detail: str


async def version(profile: Profile, processes: Processes) -> Detected:
    """Asks the program, in a home of its own; one that does not answer is installed all the same."""
    path = shutil.which(profile.program)
    if path is None:
        return Detected(None, "", f"program {profile.program!r} was not found")
    with tempfile.TemporaryDirectory(prefix="orchestrix-version-") as scratch:
        here = Path(scratch)
        spec = ProcessSpec(
            argv=(profile.program, *profile.detect.arguments),
            cwd=here,
            env={**environment.inherited(os.environ), "HOME": scratch},
            log=here / "log",
            timeout_ms=_SECONDS * 1000,
            rights=Rights(writable=(here,)),
        )
        try:
            await processes.run(spec, on_start=lambda _who: None)
        except EnvironmentProblem as error:
            return Detected(path, "", f"{path}; its version cannot be asked: {error.message}")
        said = spec.log.read_text(errors="replace") if spec.log.exists() else ""
    found = re.search(profile.detect.pattern, said)
    number = (found[1] if found.re.groups else found[0]) if found else ""
    return Detected(path, number, path if number else f"{path}; it did not say its version")
