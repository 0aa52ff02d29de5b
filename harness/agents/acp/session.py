"""One session: greet, log in, open, choose the asking mode, prompt, and hear how the turn ended."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any, cast

import acp
from acp import schema
from acp.client.connection import ClientSideConnection
from pydantic import ValidationError

from harness.agents.acp import modes
from harness.agents.acp.alarm import Alarm
from harness.agents.acp.calls import Calls
from harness.agents.acp.client import Client
from harness.agents.acp.rules import Rules
from harness.agents.acp.terminals import Terminals
from harness.agents.acp.updates import Updates
from harness.agents.acp.wire import Wire
from harness.config.acp_program import AcpProgram
from harness.errors import ContractViolation, ToolFailed
from harness.model import events as ev
from harness.model import limits
from harness.model.verdict import Failure, Reason
from harness.ports import Channel, Execute, Job, Tools
from harness.tools.permission import allows

_LOGIN = -32000
_RATE_LIMITED = re.compile(r"\b429\b|rate.?limit|too many requests|quota", re.IGNORECASE)
_GOODBYE_SECONDS = 0.5
_STOPS = {
    "max_tokens": "the model ran out of tokens",
    "max_turn_requests": "the agent reached its limit of requests for one turn",
    "refusal": "the model refused to go on",
}


class Session:
    """The talk with one agent about one attempt; `over` is true once its turn has ended by its own word."""

    def __init__(self, program: AcpProgram, job: Job, tools: Tools, execute: Execute) -> None:
        self._program = program
        self._job = job
        self._tools = tools
        self._execute = execute
        self._terminals: Terminals | None = None
        self.over = False
        self.failure: Failure | None = None
        self.usage: dict[str, Any] = {}

    async def talk(self, channel: Channel) -> None:
        """Raises what broke the session: ContractViolation for a breach, ToolFailed for what is not the protocol."""
        rules, calls = Rules(self._job.contract, self._job.workspace), Calls()
        alarm, updates = Alarm(), Updates(self._job, channel, rules, calls)
        self._terminals = Terminals(self._execute, self._job.note, alarm.ring, lambda: channel.note(""))
        client = Client(
            self._job,
            self._tools,
            rules=rules,
            calls=calls,
            updates=updates,
            terminals=self._terminals,
            alarm=alarm,
        )
        connection = ClientSideConnection(cast("acp.Client", client), Wire(channel, updates.hear, alarm.ring))
        try:
            with contextlib.suppress(ConnectionError):  # the agent is gone: its exit says more
                await alarm.unless_rung(self._converse(connection, client, updates))
        except asyncio.CancelledError:
            await _say_goodbye(connection, updates.session)
            raise
        finally:
            await connection.close()

    async def close(self) -> None:
        """Ends the terminals that the agent left open."""
        if self._terminals is not None:
            await self._terminals.close()

    async def _converse(self, connection: ClientSideConnection, client: Client, updates: Updates) -> None:
        try:
            async with asyncio.timeout(limits.HANDSHAKE_MS / 1000):
                await self._open(connection, updates)
            if self.failure is None:
                await self._turn(connection, client, updates)
        except acp.RequestError as error:
            self.failure = _refused(error)
        except TimeoutError as error:
            raise ToolFailed(f"the agent did not open a session within {limits.HANDSHAKE_MS // 1000} s") from error
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise ToolFailed(f"the agent sent a malformed answer: {where}: {error.errors()[0]['msg']:.200}") from error

    async def _open(self, connection: ClientSideConnection, updates: Updates) -> None:
        hello = await connection.initialize(
            acp.PROTOCOL_VERSION,
            client_capabilities=self._capabilities(),
            client_info=schema.Implementation(name="orchestrix", version="1"),
        )
        if hello.protocol_version != acp.PROTOCOL_VERSION:
            raise ToolFailed(
                f"the agent speaks version {hello.protocol_version} of the protocol, not {acp.PROTOCOL_VERSION}"
            )
        if self._program.auth is not None:
            await connection.authenticate(self._program.auth)
        opened = await connection.new_session(str(self._job.workspace), mcp_servers=[])
        try:
            mode = modes.chosen(self._program.mode, opened.modes)
        except ContractViolation as error:
            self.failure = Failure(Reason.CONTRACT_REFUSED, error.message, hint=error.hint)
            return
        if mode is not None:
            await connection.set_session_mode(opened.session_id, mode)
        updates.mode, updates.session = mode, opened.session_id
        agent = hello.agent_info or schema.Implementation(name=self._program.command[0], version="")
        about = {"program": agent.name[: limits.TITLE_CHARS], "version": agent.version[: limits.TITLE_CHARS]}
        session = opened.session_id[: limits.TITLE_CHARS]
        self.usage |= {"session_id": session, **about}
        self._job.note(ev.SessionOpened, attempt=self._job.attempt, session_id=session, mode=mode, **about)

    def _capabilities(self) -> schema.ClientCapabilities:
        """What the settings offer and the contract allows."""
        contract, serves = self._job.contract, self._program.serves
        return schema.ClientCapabilities(
            fs=schema.FileSystemCapabilities(
                read_text_file="read" in serves and allows(contract, "read_file"),
                write_text_file="write" in serves and allows(contract, "write_file"),
            ),
            terminal="terminal" in serves and allows(contract, "run"),
        )

    async def _turn(self, connection: ClientSideConnection, client: Client, updates: Updates) -> None:
        answer = await connection.prompt(updates.session or "", [acp.text_block(self._job.prompt)])
        updates.check_unfinished()
        self.over = True
        self.usage |= _usage(answer, updates.cost)
        self.failure = _stopped(answer.stop_reason, client.last_denial)


async def _say_goodbye(connection: ClientSideConnection, session: str | None) -> None:
    """Tells the agent to stop, so that it can stop its own; it is not waited for."""
    if session is not None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await connection.cancel(session)


def _stopped(reason: str, denial: str) -> Failure | None:
    if reason == "end_turn":
        return None
    if reason == "cancelled" and denial:
        return Failure(
            Reason.TOOL_DENIED, f"the agent gave up after a denial: {denial}", hint="widen the contract if it must"
        )
    return Failure(Reason.AGENT_FAILED, _STOPS.get(reason, f"the agent ended its turn as {reason}"))


def _refused(error: acp.RequestError) -> Failure:
    said = f"{error} {error.data or ''}".strip()[:500]
    if error.code == _LOGIN:
        return Failure(
            Reason.AUTH_FAILED,
            f"the agent is not logged in: {said}",
            hint="name the variable with its key as `env`, and how it logs in as `auth`, of the agent in the settings",
        )
    if _RATE_LIMITED.search(f"{error.code} {said}"):
        return Failure(Reason.RATE_LIMITED, f"the agent asks to be tried again later: {said}")
    return Failure(Reason.AGENT_FAILED, f"the agent answered with an error: {said}")


def _usage(answer: schema.PromptResponse, cost: schema.Cost | None) -> dict[str, Any]:
    counted = {} if answer.usage is None else answer.usage.model_dump(exclude_none=True, exclude={"field_meta"})
    if cost is not None:
        counted[f"cost_{cost.currency.lower()[:8]}"] = cost.amount
    return counted
