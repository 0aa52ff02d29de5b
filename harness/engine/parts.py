"""What the engine is given: ports and nothing concrete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.model import limits
from harness.model.contract import Contract
from harness.model.late import dataclass
from harness.ports import Agent, Clock, Execute, Model, Processes, Store, Tools, Vcs

if TYPE_CHECKING:
    from harness.engine.context import Context  # holds these parts


class OnTool(Protocol):
    def __call__(self, tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None: ...


class MakeTools(Protocol):
    def __call__(
        self, contract: Contract, workspace: Path, execute: Execute, on_tool: OnTool, *, step: str
    ) -> Tools: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The composition root fills this in."""

    store: Store
    vcs: Vcs
    processes: Processes
    clock: Clock
    agent: Callable[[str], Agent]
    make_tools: MakeTools
    prompt: Callable[[Contract, str | None, bool], str]  # why the attempt before failed; whether files are left out
    environment: Callable[[tuple[str, ...]], Mapping[str, str]]
    runs_dir: Path
    checkout: Path
    drive: Callable[[Context], Awaitable[None]]  # decides what is next until the run has ended or waits
    close: Callable[[Context], Awaitable[None]]  # in its place where a run is ended before its steps are done
    model: Callable[[], Model | None] = lambda: None  # asked for when a decision needs one
    model_timeout_ms: int = limits.MODEL_CALL_MS  # for one answer of the model, whatever it is asked
    hears: Callable[[str], None] | None = None  # told the final answer while the model gives it
