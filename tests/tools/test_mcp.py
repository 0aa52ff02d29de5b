"""Tools of MCP servers: offered when allowed, held to their schemas, ended with the attempt."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.config.mcp_file import McpServer
from harness.errors import ContractViolation, ToolFailed
from harness.model import limits
from harness.model.process import ProcessResult, ProcessSpec
from harness.ports import Talk, ToolOffer
from harness.sandbox import choice
from harness.tools.broker import Broker, Remote
from tests.sandbox.survivors import marked
from tests.tools.conftest import contract_with

_SERVER = Path(__file__).with_name("mcp_server.py")


@dataclass
class Door:
    """Programs really run, in the sandbox that this machine has."""

    root: Path
    told: list[tuple[str, bool, bool]] = field(default_factory=list)

    async def talk(
        self, argv: Sequence[str], talk: Talk, *, purpose: str, env: Mapping[str, str] | None = None, name: str = ""
    ) -> ProcessResult:
        environ = {"PATH": os.environ["PATH"], **(env or {})}
        spec = ProcessSpec(tuple(argv), self.root / "workspace", environ, self.root / f"log-{name}", 60_000)
        return await choice.choose("auto").run(spec, on_start=lambda who: None, talk=talk)

    def broker(self, *tools: str, how: str = "well", fallback: dict[str, str] | None = None) -> Broker:
        def on_tool(tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None:
            self.told.append((tool, allowed, ok))

        argv = [str(_SERVER), how, f"mcp-test-{self.root.name}"]
        servers = {"sums": McpServer(command=sys.executable, args=argv, fallback=fallback or {})}
        return Broker(contract_with(*tools), self.root / "workspace", self, on_tool, remote=Remote(servers))


@pytest.fixture
def door(tmp_path) -> Door:
    (tmp_path / "workspace").mkdir()
    return Door(tmp_path)


async def _used(broker: Broker, tool: str, **arguments: Any) -> tuple[list[ToolOffer], str]:
    async with broker.offered() as offers:
        return list(offers), await broker.call(tool, arguments)


def _use(broker: Broker, tool: str, **arguments: Any) -> tuple[list[ToolOffer], str]:
    return asyncio.run(_used(broker, tool, **arguments))


def test_an_allowed_tool_of_a_server_is_offered_and_called(door) -> None:
    """Under a name that providers accept; the log has its true one. Nothing of the server is left."""
    offers, answer = _use(door.broker("mcp:sums/double"), "mcp__sums__double", n=21)
    assert [(offer.name, offer.description) for offer in offers] == [
        ("finish", offers[0].description),
        ("mcp__sums__double", "Doubles a number."),
    ]
    assert answer == '{"n": 42}'
    assert door.told == [("mcp:sums/double", True, True)]
    assert marked(f"mcp-test-{door.root.name}") == []


def test_a_tool_that_is_not_listed_is_denied(door) -> None:
    """One tool of a server is not all of them."""
    with pytest.raises(ContractViolation):
        _use(door.broker("mcp:sums/double"), "mcp:sums/shout")
    assert door.told == [("mcp:sums/shout", False, False)]


@pytest.mark.parametrize("allowed", ["read_file", "mcp:other/double", "mcp:sums"])
def test_a_server_of_which_nothing_is_allowed_is_not_offered(door, allowed) -> None:
    """A permission is a whole name."""
    offers, _ = _use(door.broker(allowed), "finish", summary="x")
    assert [offer.name for offer in offers if offer.name.startswith("mcp")] == []


def test_long_answers_are_cut(door) -> None:
    _, answer = _use(door.broker("mcp:sums/shout"), "mcp:sums/shout")
    assert len(answer) == limits.BUILTIN_RESULT_CHARS


def test_an_error_of_the_tool_is_a_failure_of_the_call(door) -> None:
    with pytest.raises(ToolFailed) as caught:
        _use(door.broker("mcp:sums/fail"), "mcp:sums/fail")
    assert caught.value.message == "fail: it broke"


def test_an_answer_against_the_schema_is_asked_for_once_more(door) -> None:
    """A slip is forgiven, once."""
    assert _use(door.broker("mcp:sums/double", how="lies-once"), "mcp:sums/double", n=2)[1] == '{"n": 4}'


def test_then_the_fallback_tool_answers(door) -> None:
    """It is a call like any other: permitted, checked and told."""
    (door.root / "workspace" / "a.txt").write_text("from the file")
    broker = door.broker("mcp:sums/double", "read_file", how="lies", fallback={"double": "read_file"})
    with pytest.raises(ToolFailed, match="Extra inputs"):
        _use(broker, "mcp:sums/double", path="a.txt", n=1)
    assert door.told == [("read_file", True, False), ("mcp:sums/double", True, False)]
    door.told.clear()
    assert _use(broker, "mcp:sums/double", path="a.txt")[1] == "from the file"
    with pytest.raises(ContractViolation):
        _use(door.broker("mcp:sums/double", how="lies", fallback={"double": "shell"}), "mcp:sums/double", n=1)


def test_without_a_fallback_the_model_hears_of_it(door) -> None:
    with pytest.raises(ToolFailed) as caught:
        _use(door.broker("mcp:sums/double", how="lies"), "mcp:sums/double", n=1)
    assert "Invalid structured content" in caught.value.message


def test_a_server_that_does_not_start_fails_the_attempt_at_once(door) -> None:
    """With its name; nothing hangs."""
    with pytest.raises(ToolFailed) as caught:
        _use(door.broker("mcp:sums/double", how="dies"), "mcp:sums/double", n=1)
    assert "the MCP server sums" in caught.value.message


def test_noise_between_messages_is_survived(door) -> None:
    assert _use(door.broker("mcp:sums/double", how="chatters"), "mcp:sums/double", n=3)[1] == '{"n": 6}'
