"""What the agent can ask of us: permissions, files and terminals; every answer comes from the contract."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from acp import schema
from acp.exceptions import RequestError

from harness.agents.acp.alarm import Alarm
from harness.agents.acp.calls import Calls
from harness.agents.acp.rules import Rules
from harness.agents.acp.terminals import Terminal, Terminals
from harness.agents.acp.updates import Updates
from harness.errors import ContractViolation, ToolFailed
from harness.model import events as ev
from harness.model import limits
from harness.ports import Job, Tools
from harness.tools.inside import Inside
from harness.tools.permission import allows

_Answer = TypeVar("_Answer")
_REFUSED = -32602
_ALLOW = ("allow_once",)  # never "always": the next call must ask again
_REJECT = ("reject_once", "reject_always")


def _answering(handler: Callable[..., Awaitable[_Answer]]) -> Callable[..., Awaitable[_Answer]]:
    """A refusal is an answer; whatever else goes wrong ends the session."""

    @functools.wraps(handler)
    async def guarded(self: Client, session_id: str, **arguments: Any) -> _Answer:
        try:
            self.expect(session_id)
            return await handler(self, **arguments)
        except RequestError:
            raise
        except (ContractViolation, ToolFailed) as error:
            raise RequestError(_REFUSED, error.message) from error
        except Exception as error:  # whatever it is, the SDK would print it and go on
            self.alarm.ring(error)
            raise RequestError.internal_error() from error

    return guarded


class Client:
    """The SDK's client side for one session."""

    def __init__(
        self,
        job: Job,
        tools: Tools,
        *,
        rules: Rules,
        calls: Calls,
        updates: Updates,
        terminals: Terminals,
        alarm: Alarm,
    ) -> None:
        self._job = job
        self._tools = tools
        self._rules = rules
        self._calls = calls
        self._updates = updates
        self._terminals = terminals
        self._requests = 0
        self._inside = Inside(job.workspace)
        self.alarm = alarm
        self.last_denial = ""

    def expect(self, session: str) -> None:
        """Rings the alarm for requests that come before the turn, for another session, or without end."""
        self._requests += 1
        error = None
        if self._updates.session is None or session != self._updates.session:
            error = ToolFailed(f"the agent asks for a session {session!r:.80} that is not open")
        elif self._requests > limits.AGENT_REQUESTS:
            error = ToolFailed(f"the agent asked more than {limits.AGENT_REQUESTS} times")
        if error is not None:
            self.alarm.ring(error)
            raise error

    @_answering
    async def request_permission(
        self, tool_call: schema.ToolCallUpdate, options: Sequence[schema.PermissionOption]
    ) -> schema.RequestPermissionResponse:
        call = self._calls.learn(tool_call)
        about = self._updates.about(call)
        self._job.note(ev.PermissionAsked, **about)
        why = self._rules.refusal(call.kind, call.paths)
        if not why and _option(options, _ALLOW) is None:
            why = "it cannot be allowed for once only"
        call.allowed = not why
        if not why:
            self._job.note(ev.PermissionAllowed, **about)
            return _selected(_option(options, _ALLOW))
        self.last_denial = f"{call.kind} {' '.join(about['paths']) or call.title}: {why}"
        self._job.note(ev.PermissionDenied, **about, why=why)
        return _selected(_option(options, _REJECT))

    @_answering
    async def read_text_file(
        self, path: str, line: int | None = None, limit: int | None = None
    ) -> schema.ReadTextFileResponse:
        inner = self._rules.relative(path)
        if inner is not None and allows(self._job.contract, "read_file") and not self._inside.exists(inner):
            raise RequestError.resource_not_found(path)
        text = await self._tools.call("read_file", {"path": path if inner is None else inner})
        if line is not None or limit is not None:
            start = max(0, (line or 1) - 1)
            lines = text.splitlines(keepends=True)[start:]
            text = "".join(lines if limit is None else lines[:limit])
        return schema.ReadTextFileResponse(content=text)

    @_answering
    async def write_text_file(self, path: str, content: str) -> schema.WriteTextFileResponse:
        inner = self._rules.relative(path)
        unowned = "" if inner is None else self._rules.unowned(inner)
        if unowned:
            self._deny("write_file", {"path": inner}, unowned)
        await self._tools.call("write_file", {"path": path if inner is None else inner, "content": content})
        return schema.WriteTextFileResponse()

    @_answering
    async def create_terminal(
        self,
        command: str,
        args: Sequence[str] | None = None,
        env: Sequence[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
    ) -> schema.CreateTerminalResponse:
        argv = [command, *args] if args else ["sh", "-c", command]
        folder = "." if cwd is None else self._rules.relative(cwd)
        if not allows(self._job.contract, "run"):
            self._deny("run", {"command": argv}, "the contract lacks run")
        if folder is None:
            self._deny("run", {"command": argv, "cwd": cwd}, f"{cwd} lies outside the workspace")
        given = {variable.name: variable.value for variable in env or []}
        name = self._terminals.create(argv, folder or ".", given, output_byte_limit)
        return schema.CreateTerminalResponse(terminal_id=name)

    @_answering
    async def terminal_output(self, terminal_id: str) -> schema.TerminalOutputResponse:
        found = self._terminals.find(terminal_id)
        status = None if found.exit is None else schema.TerminalExitStatus(**found.exit)
        return schema.TerminalOutputResponse(output=found.text, truncated=found.truncated, exit_status=status)

    @_answering
    async def wait_for_terminal_exit(self, terminal_id: str) -> schema.WaitForTerminalExitResponse:
        ended: Terminal = await self._terminals.wait(terminal_id)
        return schema.WaitForTerminalExitResponse(**(ended.exit or {}))

    @_answering
    async def kill_terminal(self, terminal_id: str) -> None:
        await self._terminals.kill(terminal_id)

    @_answering
    async def release_terminal(self, terminal_id: str) -> None:
        await self._terminals.release(terminal_id)

    async def session_update(self, **_update: Any) -> None:
        """Never called: the wire hands updates over itself, in their order."""

    def _deny(self, tool: str, arguments: dict[str, Any], why: str) -> None:
        self.last_denial = f"{tool}: {why}"
        self._job.note(ev.ToolDenied, tool=tool, arguments=arguments, message=why)
        raise ContractViolation(why)


def _option(options: Sequence[schema.PermissionOption], kinds: Sequence[str]) -> str | None:
    return next((option.option_id for kind in kinds for option in options if option.kind == kind), None)


def _selected(option: str | None) -> schema.RequestPermissionResponse:
    """The option; without one the only other answer that the protocol knows."""
    if option is None:
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
    return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=option))
