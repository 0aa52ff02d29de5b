"""A run in a process of its own whose step waits for the test, so that a fault comes in the middle and not by luck."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.coordinators import holder_of
from support.workbench import Result, Workbench, shell

_PATIENCE_SECONDS = 60.0
UP, GO = ".held-up", ".held-go"


def held(path: str, **fields: Any) -> dict[str, Any]:
    """A step that writes `path` and then, in its first attempt, waits in its workspace until it is let go."""
    script = (
        f'echo held > {path}; [ "$ORCHESTRIX_ATTEMPT" = 1 ] || exit 0; touch {UP};'
        f" while [ -e {UP} ] && [ ! -e {GO} ]; do sleep 0.02; done; rm -f {UP} {GO}"
    )
    return shell(script, title=f"held {path}", owns=[path], **fields)


def until(happened: Callable[[], Any], what: str) -> Any:
    """Polls; what it waits for is an effect that can be seen, never a time that has passed."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not (found := happened()):
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.01)
    return found


class LiveRun:
    """One `orchestrix run --json` under way."""

    def __init__(self, bench: Workbench, *flags: str, state_home: Path | None = None, **env: str) -> None:
        self._state = state_home or Path(os.environ["XDG_STATE_HOME"])
        surroundings = {**env, "XDG_STATE_HOME": str(self._state)}
        plan = str(bench.root / "plan.json")
        self.process: subprocess.Popen[str] = bench.process("run", plan, "--json", *flags, env=surroundings)

    def workspace(self) -> Path:
        """The workspace of the step that is waiting now."""
        return Path("/") / self._inside().relative_to(self._seen)

    @property
    def _seen(self) -> Path:
        """The file system as the coordinator's programs see it: the mounts of its workspaces are held by one of them."""
        return Path(f"/proc/{holder_of(self.process.pid) or self.process.pid}/root")

    def _inside(self) -> Path:
        found = until(self._waiting, "a held step")
        return found[0].parent

    def _waiting(self) -> list[Path]:
        if self.process.poll() is not None:
            out, err = self.process.communicate()
            raise AssertionError(f"the run ended early: {out}{err}")
        state = self._seen / self._state.relative_to("/")
        return list(state.glob(f"orchestrix/*/*/trees/*/{UP}"))

    def let_go(self) -> None:
        (self._inside() / GO).touch()

    def end(self) -> Result:
        out, err = self.process.communicate(timeout=_PATIENCE_SECONDS)
        return Result(self.process.returncode, out, err)


def stopped(result: Result, code: int, words: str) -> None:
    """The run stopped with this status and one sentence that says why; stderr holds no more than the usual warning."""
    said = [line for line in result.err.splitlines() if not line.startswith("warning: no sandbox")]
    assert (result.code, said) == (code, []), (result.out, said)
    error = json.loads(result.out)["error"]
    assert words in error["message"], error
    assert error["hint"], error
