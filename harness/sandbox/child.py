"""One started process tree: its output, its exit, and the socket over which it waits for the word to begin."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence

from harness.errors import EnvironmentProblem
from harness.ports import OnOutput
from harness.sandbox.output import Lines, Transcript

_READ_BYTES = 1024 * 1024
_DEATH_SECONDS = 10.0
READY = b"ready\n"
GO = b"go\n"


class Child:
    """The direct child of the coordinator (bwrap, or the reaper); what it confines lies below it.

    Its descriptors are unusual: 0 is the control socket, 1 is what the program will read as its stdin, and 2 takes all
    output. The program itself gets the usual three. So nothing but single digits is ever named, which is all that a
    POSIX shell promises to understand. Where the program is talked with, 1 is its stdout (see Conversation).

    What happens to it is noted in plain fields; whoever waits for any of it is woken to look (`until`). That is half
    the turns of the event loop that a future for each would take.
    """

    def __init__(
        self,
        argv: Sequence[str],
        given: bytes | int,
        transcript: Transcript,
        handles: Sequence[int],
        control: tuple[socket.socket, socket.socket] | None = None,
    ) -> None:
        """Starts `argv`, which also inherits `handles`; `given` is the content of stdin, or the descriptor of stdout."""
        self._loop = asyncio.get_running_loop()
        self._transcript = transcript
        self.exited = False
        self.answered = False
        self._drained = False
        self._heard: bytes | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._late = False
        self._lines: Lines | None = None
        self.last_output = self._loop.time()
        self.on_output: OnOutput | None = None
        self._problem: EnvironmentProblem | None = None
        self._anchor: int | None = None
        self._anchor_watched = False
        with contextlib.ExitStack() as stack, contextlib.ExitStack() as on_error:
            self.control, theirs = control or socket.socketpair()
            on_error.callback(self.control.close)
            stack.callback(theirs.close)
            self._output, sink = os.pipe()
            on_error.callback(os.close, self._output)
            stack.callback(os.close, sink)
            _widen(self._output)
            one = stack.enter_context(memory_file(given)) if isinstance(given, bytes) else given
            self.process = _popen(argv, theirs.fileno(), one, sink, handles)
            on_error.callback(self._give_up)
            self._exit_handle = os.pidfd_open(self.process.pid)
            on_error.pop_all()
        self.control.setblocking(False)
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._exit_handle, self._on_exit)
        self._loop.add_reader(self._output, self._on_output)

    def _give_up(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit_code(self) -> int:
        """The program's status; an end by signal n is 128 + n, as a shell says it."""
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    @property
    def broken(self) -> bool:
        """Whether output could not be kept."""
        return self._problem is not None

    def happened(self, _what: object = None) -> None:
        """Wakes whoever waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Waits for `done`, asked whenever something happened; False when time is up. Only one waits at a time."""
        if done():
            return True
        self._late = False
        timer = self._loop.call_later(seconds, self._is_late)
        try:
            while not done() and not self._late:
                self._waiter = self._loop.create_future()
                await self._waiter
        finally:
            timer.cancel()
        return done()

    def _is_late(self) -> None:
        self._late = True
        self.happened()

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._exit_handle)
        self.process.wait()
        self.exited = True
        self.happened()

    def _on_output(self) -> None:
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._stop_reading()
            return
        self.keep(data)
        if self.on_output is not None:
            self.on_output(data)

    def keep(self, data: bytes) -> None:
        """Adds to the log; a sign of life, whoever heard it."""
        self.last_output = self._loop.time()
        if self.broken:
            return
        try:
            self._transcript.write(data)
        except EnvironmentProblem as error:
            self._problem = error
            self.happened()
        if self._lines is not None and self._lines.feed(data):
            self.answered = True
            self.happened()

    def watch(self, until: Callable[[bytes], bool]) -> None:
        """Shows every whole line of output to `until`; call it before `release`."""
        self._lines = Lines(until)

    def _stop_reading(self) -> None:
        if not self._drained:
            self._loop.remove_reader(self._output)
            self._drained = True
            self.happened()

    async def ready(self, seconds: float) -> bool:
        """Waits until the program could start; False when its surroundings could not be made. Raises TimeoutError."""
        control = self.control.fileno()  # a number: the loop's table would describe a socket in words before it adds it
        self._loop.add_reader(control, self._on_word)
        try:
            if not await self.until(lambda: self._heard is not None, seconds):
                raise TimeoutError
        finally:
            self._loop.remove_reader(control)
        return bool(self._heard)

    def _on_word(self) -> None:
        if self._heard is None:  # later there may be an end of file, which is no answer to this
            with contextlib.suppress(BlockingIOError):
                self._heard = self._word()
                self.happened()

    def _word(self) -> bytes:
        try:
            return self.control.recv(len(READY))
        except ConnectionError:
            return b""

    def release(self) -> None:
        """Lets the program start; until here nothing of it has run."""
        with contextlib.suppress(OSError):  # it may have been killed meanwhile: its exit says so
            self.control.send(GO)

    def check_log(self) -> None:
        """Raises EnvironmentProblem when output could not be kept."""
        if self._problem is not None:
            raise self._problem

    async def exits_within(self, seconds: float) -> bool:
        return await self.until(lambda: self.exited, seconds)

    def anchor(self, pid: int) -> None:
        """Names the process whose end is the end of everything below; without one it is the child itself."""
        self._anchor = os.pidfd_open(pid)

    def _on_anchor_end(self) -> None:
        if self._anchor is not None:
            self._loop.remove_reader(self._anchor)
            self._anchor_watched = False
            self.happened()

    @property
    def gone(self) -> bool:
        """Whether nothing is left of all."""
        return self.exited and (self._anchor is None or _has_ended(self._anchor))

    def kill(self) -> None:
        """The end, not the request for it."""
        for handle in (self._anchor, self._exit_handle):
            if handle is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)

    def hang_up(self) -> None:
        """Shows the child an end of file where it listens, and makes it listen if it was stopped."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._exit_handle, signal.SIGCONT)
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)

    @property
    def died_by_signal(self) -> bool:
        return self.process.returncode < 0

    async def is_gone(self) -> None:
        """Waits for the end of all; raises EnvironmentProblem when something cannot even be killed."""
        if self.gone:
            return
        if self._anchor is not None:
            self._anchor_watched = True
            self._loop.add_reader(self._anchor, self._on_anchor_end)
        if not await self.until(lambda: self.exited and not self._anchor_watched, _DEATH_SECONDS):
            raise EnvironmentProblem(
                f"process {self.pid} does not end even when killed",
                hint=f"look at it with `ps -fp {self.pid}`: it may hang in a dead disk or network drive",
            )

    async def close(self, drain_seconds: float) -> None:
        """Takes what is left in the pipe, but does not wait for a stranger who holds it open."""
        await self.until(lambda: self._drained, drain_seconds)
        self._let_go()

    def close_at_once(self) -> bool:
        """Does so if the pipe is at its end."""
        if not self._drained:
            self._on_output()
        if self._drained:
            self._let_go()
        return self._drained

    def _let_go(self) -> None:
        self._stop_reading()
        os.close(self._output)
        for handle, watched in ((self._exit_handle, not self.exited), (self._anchor, self._anchor_watched)):
            if handle is not None:
                if watched:
                    self._loop.remove_reader(handle)
                os.close(handle)
        self.control.close()


def _popen(argv: Sequence[str], control: int, one: int, sink: int, handles: Sequence[int]) -> subprocess.Popen[bytes]:
    # An empty environment: what a step sets (LD_PRELOAD) must act inside its confinement, not on what confines it.
    return subprocess.Popen(
        argv, stdin=control, stdout=one, stderr=sink, env={}, cwd="/", pass_fds=handles, start_new_session=True
    )


def _has_ended(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(0))


@contextlib.contextmanager
def memory_file(data: bytes) -> Iterator[int]:
    """A read-only descriptor with this content: whoever does not read it holds nobody up."""
    writing = os.memfd_create("orchestrix")
    try:
        while data:
            data = data[os.write(writing, data) :]
        reading = os.open(f"/proc/self/fd/{writing}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)


def _widen(pipe: int) -> None:
    """Fewer wake-ups for much output; an unprivileged user may be out of pipe memory, and then it stays small."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _READ_BYTES)
