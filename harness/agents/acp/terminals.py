"""Terminals of an agent: each a program of the step, behind the same door, with a log of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from harness.errors import OrchestrixError, ToolFailed
from harness.model import events as ev
from harness.model import limits
from harness.model.late import dataclass
from harness.model.process import Ending, ProcessResult
from harness.ports import Execute, Note
from harness.tools.broker import told

_SIGNALLED = 128
_IN_FOLDER = 'cd "$1" && shift && exec "$@"'


@dataclass(slots=True)
class Terminal:
    """Keeps the end of the output, cut at a character."""

    most: int
    task: asyncio.Task[ProcessResult | None]
    output: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def hear(self, data: bytes) -> None:
        self.output += data
        if len(self.output) > self.most:
            self.truncated = True
            del self.output[: len(self.output) - self.most]

    @property
    def text(self) -> str:
        start = next((n for n, byte in enumerate(self.output[:4]) if byte & 0xC0 != 0x80), 0)  # noqa: PLR2004 - UTF-8
        return bytes(self.output[start if self.truncated else 0 :]).decode("utf-8", "replace")

    @property
    def exit(self) -> Mapping[str, Any] | None:
        """How it ended, in the protocol's words; None while it runs."""
        if not self.task.done():
            return None
        result = None if self.task.cancelled() or self.task.exception() else self.task.result()
        if result is None or result.ending is not Ending.EXITED:
            return {"signal": "SIGKILL"}
        code = result.exit_code or 0
        return {"exit_code": code} if code <= _SIGNALLED else {"exit_code": code, "signal": str(code - _SIGNALLED)}


class Terminals:
    """Those of one session, by id; unknown ids raise ToolFailed."""

    def __init__(
        self,
        execute: Execute,
        note: Note,
        on_error: Callable[[OrchestrixError], None],
        on_life: Callable[[], None],
    ) -> None:
        self._execute = execute
        self._note = note
        self._on_error = on_error
        self._on_life = on_life
        self._open: dict[str, Terminal] = {}
        self._made = 0

    def create(self, argv: Sequence[str], folder: str, env: Mapping[str, str], most: int | None) -> str:
        """Starts a program in a folder of the workspace and returns the terminal's id."""
        if len(self._open) >= limits.TERMINALS:
            raise ToolFailed(f"{limits.TERMINALS} terminals are open", hint="release one first")
        self._made += 1
        name = f"terminal-{self._made}"
        words = argv if folder == "." else ["sh", "-c", _IN_FOLDER, "sh", folder, *argv]
        task = asyncio.create_task(self._run(name, words, env))
        size = limits.TERMINAL_BYTES if most is None else min(most, limits.TERMINAL_BYTES)
        self._open[name] = Terminal(size, task)
        return name

    async def _run(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> ProcessResult | None:
        def hear(data: bytes) -> None:
            self._on_life()
            if name in self._open:
                self._open[name].hear(data)

        try:
            result = await self._execute.aside(argv, name=name, on_output=hear, env=env)
            self._note(
                ev.ToolCalled,
                tool="run",
                arguments=told({"command": list(argv)}),
                ok=result.ok,
                message=result.message or ("" if result.ok else f"exit code {result.exit_code}"),
            )
        except OrchestrixError as error:
            self._on_error(error)
            return None
        if result.message:
            hear(f"{result.message}\n".encode())
        return result

    def find(self, name: str) -> Terminal:
        if name not in self._open:
            raise ToolFailed(f"there is no terminal {name!r:.80}")
        return self._open[name]

    async def wait(self, name: str) -> Terminal:
        """Returns when the program has ended; the wait can be given up without ending it."""
        terminal = self.find(name)
        await asyncio.wait({terminal.task})
        return terminal

    async def kill(self, name: str) -> None:
        """Ends the program with everything that it started; its output stays."""
        task = self.find(name).task
        task.cancel()
        await asyncio.wait({task})

    async def release(self, name: str) -> None:
        await self.kill(name)
        self._open.pop(name, None)

    async def close(self) -> None:
        """Ends all of them."""
        await asyncio.gather(*[self.release(name) for name in self._open])
