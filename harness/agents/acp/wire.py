"""JSON-RPC over lines, each message checked before the SDK sees it: what is malformed or unasked for ends the talk.

The SDK writes to the process-wide log whatever it cannot handle. So nothing reaches it that it would stumble over:
notifications are handled here, in the order in which they come, and a stream that breaks is an end, not an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import OrchestrixError, ToolFailed
from harness.model import limits
from harness.ports import Channel

OnNotification = Callable[[str, Mapping[str, Any]], None]
OnError = Callable[[OrchestrixError], None]


class Wire:
    """The SDK's transport over one channel."""

    def __init__(self, channel: Channel, on_notification: OnNotification, on_error: OnError) -> None:
        self._channel = channel
        self._on_notification = on_notification
        self._on_error = on_error
        self._asked: set[int | str] = set()
        self._answering: set[int | str] = set()

    async def send(self, message: dict[str, Any]) -> None:
        """Never fails: an agent that does not listen any more has ended, and its end says more."""
        if "method" not in message:
            self._answering.discard(message["id"])
        elif "id" in message:
            self._asked.add(message["id"])
        # Errors that the SDK reports can hold anything.
        line = json.dumps(message, separators=(",", ":"), default=str) + "\n"
        with contextlib.suppress(ConnectionError):
            self._channel.writer.write(line.encode())
            await self._channel.writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next request or answer; None at the end, also at the first message that breaks a rule."""
        await asyncio.sleep(0)  # what was asked before is answered before more is read
        try:
            while (line := await self._line()) is not None:
                message = _parsed(line) if line.strip() else None
                if message is not None and self._is_for_the_sdk(message):
                    return message
        except OrchestrixError as error:
            self._on_error(error)
        return None

    async def close(self) -> None:
        """The channel belongs to whoever opened it."""

    async def _line(self) -> bytes | None:
        try:
            return await self._channel.reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                raise ToolFailed("the agent's last message is cut off") from error
            return None
        except asyncio.LimitOverrunError as error:
            raise ToolFailed(f"the agent sent a message of more than {limits.MESSAGE_BYTES} bytes") from error
        except ConnectionError:
            return None

    def _is_for_the_sdk(self, message: dict[str, Any]) -> bool:
        if "method" not in message:
            self._check_answer(message)
            return True
        params = message.get("params")
        if not isinstance(message["method"], str) or not isinstance(params, dict | None):
            raise _malformed("a method is a text and its parameters are an object")
        if "id" not in message:
            self._on_notification(message["method"], params or {})
            return False
        self._check_request(message["id"])
        # What stands in `_meta` would become arguments of ours.
        message["params"] = {name: value for name, value in (params or {}).items() if name != "_meta"}
        return True

    def _check_answer(self, message: dict[str, Any]) -> None:
        asked = message.get("id")
        if not _is_id(asked) or asked not in self._asked:
            raise ToolFailed(f"the agent answers {asked!r:.80}, which nobody asked")
        if ("result" in message) == ("error" in message):
            raise _malformed("an answer has either a result or an error")
        if "error" in message and not _is_error(message["error"]):
            raise _malformed("an error has a code and a message")
        self._asked.discard(asked)

    def _check_request(self, asked: Any) -> None:
        if not _is_id(asked) or asked in self._answering:
            raise _malformed("a request has an id of its own, a number or a text")
        self._answering.add(asked)
        if len(self._answering) > limits.OPEN_REQUESTS:
            raise ToolFailed(f"the agent asks more than {limits.OPEN_REQUESTS} things at once")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"it is not JSON ({str(error)[:80]}): {line[:120]!r}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _malformed(f"it is no JSON-RPC 2.0 object: {line[:120]!r}")
    return message


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("code"), int) and isinstance(value.get("message"), str)


def _malformed(why: str) -> ToolFailed:
    return ToolFailed(
        f"the agent sent a malformed message: {why}", hint="is its program one that speaks ACP on stdin and stdout?"
    )
