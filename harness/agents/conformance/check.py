"""What is claimed of every program with a profile, tried against the installed program and a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.agents.conformance.server import ModelServer
from harness.agents.conformance.stage import Stage
from harness.agents.detect import version
from harness.agents.profile import Profile
from harness.model.late import dataclass
from harness.model.verdict import Reason
from harness.ports import Outcome, Processes

_START_SECONDS = 90.0
_LOOK_SECONDS = 0.05
_RATE_LIMITED = "says that it is rate limited"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and whether it held; `detail` says what was seen."""

    name: str
    ok: bool
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def check(profile: Profile, processes: Processes, home: Path) -> AsyncIterator[Claim]:
    """Each claim as soon as it is known, tried below `home`; without the program the first one does not hold."""
    found = await version(profile, processes)
    yield Claim("installed", found.path is not None, found.detail)
    if found.path is None:
        return
    with tempfile.TemporaryDirectory(prefix="check-", dir=home) as root, ModelServer() as server:
        stage = Stage(Path(root), profile, processes, server)
        for name, claim in _CLAIMS.items():
            if name == _RATE_LIMITED and profile.complaints.waits:
                continue
            problem = await claim(stage)
            yield Claim(name, not problem, problem)


async def _works(stage: Stage) -> str:
    """Writes a file, and runs a command where it can run one; tells its usage; sees no home but its own."""
    wanted = {"made.txt": "made\n"}
    actions = [{"write": "made.txt", "content": "made\n"}]
    if _shell(stage.profile):
        actions.append({"run": 'basename "$HOME" > home.txt'})
        wanted["home.txt"] = "home\n"
    outcome = await stage.play("obey", *actions)
    if outcome.failure is not None:
        return f"{outcome.failure.reason}: {outcome.failure.message}"
    if {name: text.rstrip() for name, text in stage.files().items()} != {n: t.rstrip() for n, t in wanted.items()}:
        return f"it left {sorted(stage.files())}, not {sorted(wanted)}"
    tokens = outcome.usage.get("input_tokens"), outcome.usage.get("output_tokens")
    return "" if all(tokens) else f"it told no usage: {dict(outcome.usage)}"


async def _denied(stage: Stage) -> str:
    """A tool that the contract does not allow is not used, even if the model calls it; or the program never starts."""
    shell = _shell(stage.profile)
    if not stage.profile.lists_tools:
        outcome = await stage.play("obey", tools=())
        refused = outcome.failure is not None and outcome.failure.reason is Reason.CONTRACT_REFUSED
        return "" if refused and not stage.server.requests() else "it was started under a contract that it cannot keep"
    call = {"run": "printf ran > ran.txt", "tool": shell}
    outcome = await stage.play("obey", call, tools=("read_file", "write_file", "edit_file"))
    offered = [{tool.name for tool in request.ask.tools} for request in stage.server.requests("obey")]
    if not any(offered):
        return f"it did not ask its model with tools: {outcome.failure.message if outcome.failure else 'no failure'}"
    return "" if "ran.txt" not in stage.files() else f"it ran {shell} though it was not granted"


async def _cancelled(stage: Stage) -> str:
    """A cancelled attempt leaves no process, whatever its tools had started."""
    word = f"orchestrix-{secrets.token_hex(8)}"
    act = {"run": f"touch started; sleep 600; : {word}"} if _shell(stage.profile) else {}
    task = asyncio.ensure_future(stage.play("obey" if act else "hang", *([act] if act else [])))
    began = await asyncio.to_thread(_seen, lambda: task.done() or _at_work(stage))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    if not began:
        return "it did not start its work in time"
    left = _carrying(word if act else str(stage.here.parent))
    return f"processes are left: {left}" if left else ""


def _at_work(stage: Stage) -> bool:
    return (stage.here / "started").exists() or bool(stage.server.requests("hang"))


def _seen(event: Callable[[], bool]) -> bool:
    """Looks until it happens, in a thread: a file that another program makes tells nobody."""
    until = time.monotonic() + _START_SECONDS
    while not event():
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _complains(scenario: str, reason: Reason) -> Callable[[Stage], Awaitable[str]]:
    async def claim(stage: Stage) -> str:
        outcome: Outcome = await stage.play(scenario)
        failure = outcome.failure
        if failure is None or failure.reason is not reason:
            return f"the model's complaint became {failure.reason + ': ' + failure.message if failure else 'a success'}"
        return ""

    return claim


def _shell(profile: Profile) -> str:
    """The program's tool that runs commands; empty when it has none."""
    named = next((tool for tool, needed in profile.tools.grants.items() if "run" in needed), "")
    return named or ("shell" if "run" in profile.tools.needs else "")


def _carrying(word: str) -> list[int]:
    """Processes with this word in their argument list."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


_CLAIMS: dict[str, Callable[[Stage], Awaitable[str]]] = {
    "denies what is not allowed": _denied,
    "does a step": _works,
    "says that its key is wrong": _complains("auth-failed", Reason.AUTH_FAILED),
    "says that its context is full": _complains("context-full", Reason.CONTEXT_FULL),
    _RATE_LIMITED: _complains("rate-limited", Reason.RATE_LIMITED),
    "leaves no process when cancelled": _cancelled,
}
