"""Without namespaces: a reaper process for each tree adopts whatever its program leaves behind, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import sys
from pathlib import Path

from harness import namespace
from harness.errors import EnvironmentProblem
from harness.model.process import ProcessSpec
from harness.sandbox import reaper, rlimits, tree
from harness.sandbox.child import Child, memory_file
from harness.sandbox.conversation import Line
from harness.sandbox.output import Transcript
from harness.sandbox.process import Door

_SOURCE = str(Path(__file__).resolve().parents[2])
_REAPER = "import sys; sys.path.insert(0, sys.argv[1]); from harness.sandbox.reaper import main; main(int(sys.argv[2]))"
_REAPER_SECONDS = 6.0
_SWEEP_SECONDS = 5.0


class Subreaper(Door):
    """Ends every process of a step, but does not keep any of them from writing where the user may write."""

    name = "subreaper"
    protects_parent = False

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self._reapers: set[int] = set()
        # The second net: should a program kill its reaper, its processes become ours.
        reaper.adopt_orphans()

    def _start(self, spec: ProcessSpec, transcript: Transcript, line: Line | None) -> Child:
        order = {
            "argv": list(spec.argv),
            "env": dict(spec.env),
            "cwd": str(spec.cwd),
            "stdin": None if line is None else line.theirs.fileno(),
            "limits": [*rlimits.wanted(spec.limits).items()],
        }
        with memory_file(marshal.dumps(order)) as listed:
            argv = [*namespace.entry(spec.cwd), sys.executable, "-I", "-S", "-c", _REAPER, _SOURCE, str(listed)]
            if line is None:
                child = Child(argv, spec.stdin, transcript, (listed,))
            else:
                child = Child(argv, line.sink, transcript, (listed, line.theirs.fileno()))
        self._reapers.add(child.pid)
        return child

    async def _kill(self, child: Child) -> None:
        child.hang_up()
        if not await child.exits_within(_REAPER_SECONDS):
            # The reaper cannot keep up, or something holds it: do its work, then end it.
            await asyncio.to_thread(tree.sweep, lambda: tree.descendants(child.pid), _SWEEP_SECONDS)
            child.kill()
            await child.is_gone()
        self._reapers.discard(child.pid)
        if child.died_by_signal:
            await asyncio.to_thread(self._end_orphans)

    def _end_orphans(self) -> None:
        """Kills what lost its reaper, and buries it."""
        gone = tree.sweep(self._orphaned, _SWEEP_SECONDS)
        for process in filter(self._is_orphan, tree.everyone()):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        if not gone:
            raise EnvironmentProblem(
                "processes of a step do not end", hint="look at them with `ps -ef`, end them, then resume"
            )

    def _orphaned(self) -> list[tree.Process]:
        processes = tree.everyone()
        roots = [process for process in processes if self._is_orphan(process)]
        alive = [process for process in roots if not process.dead]
        return alive + tree.below({process.pid for process in roots}, processes)

    def _is_orphan(self, process: tree.Process) -> bool:
        """A child of ours, in a session that is not ours, that is no reaper: it was adopted from one that died."""
        return process.parent == os.getpid() and process.pid not in self._reapers and process.session != os.getsid(0)
