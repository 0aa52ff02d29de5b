"""The one door through which programs of a step run: limits, output, and an end that takes the whole tree along."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any

from harness import namespace
from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.model.process import Ending, ProcessIdentity, ProcessResult, ProcessSpec
from harness.ports import OnOutput, Talk
from harness.sandbox import identity, tree
from harness.sandbox.child import Child
from harness.sandbox.conversation import Conversation, Line
from harness.sandbox.output import Transcript

_COUNT_SECONDS = 0.5


class Door(ABC):
    """What every confinement shares; a confinement says how a tree is started and how it is killed for certain."""

    name: str
    protects_parent: bool

    def __init__(self, why: str) -> None:
        self.why = why

    @abstractmethod
    def _start(self, spec: ProcessSpec, transcript: Transcript, line: Line | None) -> Child:
        """Starts what confines the program; the program itself waits for `release`. It is talked with over `line`."""

    @abstractmethod
    async def _kill(self, child: Child) -> None:
        """Returns when nothing of the tree is alive; raises EnvironmentProblem when that cannot be reached."""

    def _left_nothing(self, child: Child) -> bool:  # noqa: ARG002 - not every confinement can tell
        """Whether the tree is known to be dead, so that nothing has to be killed."""
        return False

    def _is_ready(self, child: Child) -> None:  # noqa: B027 - most confinements have nothing more to learn
        """Called once, before the program starts."""

    def end_orphan(self, who: ProcessIdentity) -> bool:
        """Ends what is left of a dead coordinator's process tree; never a process that only reuses the pid."""
        return identity.end(who)

    async def run(
        self,
        spec: ProcessSpec,
        *,
        on_start: Callable[[ProcessIdentity], None],
        talk: Talk | None = None,
        on_output: OnOutput | None = None,
    ) -> ProcessResult:
        """Runs to the end of the whole process tree; cancelling the call ends the tree before it returns.

        With `talk` stdin and stdout belong to the conversation, and the tree is ended when `talk` returns.
        `on_output` hears what goes into the log, as it comes.
        Raises EnvironmentProblem when the confinement, the log or the machine fails; the tree is dead then, too.
        """
        began = time.monotonic()
        refusal = _cannot_start(spec)
        if refusal:
            return self._result(Ending.NOT_FOUND, None, began, message=refusal)
        transcript = Transcript(spec.log, spec.limits.output_head, spec.limits.output_tail, spec.secrets)
        try:
            conversation = None if talk is None else Conversation(talk)
            child = self._spawn(spec, transcript, conversation)
            if isinstance(child, str):
                transcript.close()
                return self._result(Ending.NOT_FOUND, None, began, message=child)
            if spec.until is not None:
                child.watch(spec.until)
            child.on_output = on_output
            try:
                ending = await self._live(child, spec, on_start, conversation)
            finally:
                if not self._has_ended(child, conversation):
                    await _to_the_end(self._end(child, conversation))
            child.check_log()
        except BaseException:
            transcript.abandon()
            raise
        tail = transcript.close()
        if ending is None:
            raise _setup_failed(self.name, tail)
        message = f"it had more than {spec.limits.processes} processes" if ending is Ending.LIMIT else ""
        code = None if ending is Ending.ANSWERED else child.exit_code
        return self._result(ending, code, began, transcript=transcript, tail=tail, message=message)

    def _spawn(self, spec: ProcessSpec, transcript: Transcript, conversation: Conversation | None) -> Child | str:
        """The child, or why this argument list can never start."""
        try:
            return self._start(spec, transcript, None if conversation is None else conversation.open())
        except OSError as error:
            if conversation is not None:
                conversation.give_up()
            if error.errno == errno.E2BIG:
                return f"{spec.argv[0]:.80}: the argument list is too long for the system"
            raise _exhausted(error) from error

    async def _live(
        self,
        child: Child,
        spec: ProcessSpec,
        on_start: Callable[[ProcessIdentity], None],
        conversation: Conversation | None,
    ) -> Ending | None:
        """How it ended, or has to end; None when it never began."""
        try:
            if not await child.ready(spec.timeout_ms / 1000):
                return None
            self._is_ready(child)
            who = identity.probe(child.pid)
        except TimeoutError:
            return Ending.TIMEOUT
        except OSError as error:
            raise _exhausted(error) from error
        if who is None:
            return None
        on_start(who)
        child.release()
        return await _watch(child, spec, None if conversation is None else conversation.begin(child))

    def _has_ended(self, child: Child, conversation: Conversation | None) -> bool:
        """Most trees have ended by themselves: what needs no waiting is spared the turns of the event loop for it."""
        return conversation is None and self._left_nothing(child) and child.close_at_once()

    async def _end(self, child: Child, conversation: Conversation | None) -> None:
        try:
            if conversation is not None and not child.exited:
                await conversation.break_off()
            if not child.exited and _asked_to_end(child):
                await child.exits_within(limits.KILL_GRACE_MS / 1000)
            await self._kill(child)
        finally:
            try:
                if conversation is not None:
                    await conversation.close()
            finally:
                await child.close(limits.DRAIN_MS / 1000)

    def _result(
        self,
        ending: Ending,
        exit_code: int | None,
        began: float,
        *,
        transcript: Transcript | None = None,
        tail: str = "",
        message: str = "",
    ) -> ProcessResult:
        return ProcessResult(
            ending=ending,
            exit_code=exit_code,
            duration_ms=int((time.monotonic() - began) * 1000),
            output_tail=tail,
            output_bytes=transcript.written if transcript else 0,
            truncated=transcript.truncated if transcript else False,
            sandbox=self.name,
            message=message,
        )


async def _watch(child: Child, spec: ProcessSpec, talking: asyncio.Task[None] | None) -> Ending:
    clock = asyncio.get_running_loop().time
    deadline = clock() + spec.timeout_ms / 1000
    child.last_output = clock()
    if talking is not None:
        talking.add_done_callback(child.happened)

    def answered() -> bool:
        return child.answered if talking is None else talking.done()

    def over() -> bool:
        return child.exited or child.broken or answered()

    while True:
        quiet_until = deadline if spec.inactivity_ms is None else child.last_output + spec.inactivity_ms / 1000
        await child.until(over, max(0.0, min(deadline - clock(), quiet_until - clock(), _COUNT_SECONDS)))
        if child.exited or child.broken:
            return Ending.EXITED
        if answered():
            grace_ms = limits.RESULT_GRACE_MS if talking is None else limits.DRAIN_MS
            left = await child.exits_within(grace_ms / 1000)
            return Ending.EXITED if left else Ending.ANSWERED
        if clock() >= deadline:
            return Ending.TIMEOUT
        if spec.inactivity_ms is not None and clock() >= child.last_output + spec.inactivity_ms / 1000:
            return Ending.INACTIVITY
        if _has_more_processes(child, spec.limits.processes):
            return Ending.LIMIT


def _has_more_processes(child: Child, most: int) -> bool:
    """RLIMIT_NPROC does not bind root, so trees are counted; only a crowded machine makes a close look worth it."""
    try:
        return bool(most) and tree.count() > most and len(tree.descendants(child.pid)) > most
    except OSError:  # out of descriptors: counting can wait, the other limits still hold
        return False


def _asked_to_end(child: Child) -> bool:
    """Whether anybody was there to ask; without a free descriptor nobody can be found, only killed."""
    try:
        running = tree.descendants(child.pid)
    except OSError:
        return False
    tree.terminate(running)
    return bool(running)


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Finishes `work` whatever cancels the caller meanwhile, and only then lets the cancellation go on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


def _cannot_start(spec: ProcessSpec) -> str:
    """Why this program cannot be started at all; empty when it can be tried."""
    if not spec.argv or not spec.argv[0]:
        return "the argument list is empty"
    program = spec.argv[0]
    if "\0" in "".join((*spec.argv, *spec.env, *spec.env.values())):
        return f"{program!r:.80}: an argument or environment value holds a NUL character"
    cwd = namespace.seen(spec.cwd)
    if not os.path.isdir(cwd):  # noqa: PTH112 - asked before every program
        raise EnvironmentProblem(f"the working directory {spec.cwd} is missing", hint="resume the run to make it anew")
    if "/" in program:
        found = _executable(os.path.join(cwd, program))  # noqa: PTH118 - as above
    else:
        found = _on_path(program, spec.env.get("PATH", os.defpath))
    return "" if found else f"program {program!r:.80} was not found or is not executable"


_PLACES: dict[tuple[str, str], str] = {}


def _on_path(program: str, path: str) -> bool:
    """Looks first where it was the last time: while it is there still, the rest of the path decides nothing."""
    place = _PLACES.get((program, path))
    if place is None or not _executable(place):
        place = shutil.which(program, path=path)
        if place is not None:
            _PLACES[program, path] = place
    return place is not None


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - as above


def _exhausted(error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"no process can be started: {error.strerror}", hint="free memory, processes or descriptors, then resume"
    )


def _setup_failed(name: str, tail: str) -> EnvironmentProblem:
    words = tail.strip()[-500:] or "it ended without a word"
    return EnvironmentProblem(
        f"the {name} sandbox could not be set up: {words}", hint="run `orchestrix doctor`, or use `--sandbox none`"
    )
