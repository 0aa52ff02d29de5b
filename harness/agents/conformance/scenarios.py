"""Scenarios by name: each says what a scripted model does with one request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.agents.conformance.turns import Ask, Break, Hang, Refuse, Say, Turn, Use

Scenario = Callable[[Ask], Turn]
RETRY_AFTER_SECONDS = 7
_SCRIPT = re.compile(r"^SCRIPT: (\[.*\])\s*$", re.MULTILINE)


def script(*actions: Mapping[str, Any]) -> str:
    """A line for a step's description that the scenario `obey` follows, one tool call after the other.

    An action is {"write": path, "content": text}, {"read": path}, {"run": command} or {"say": text}; `tool` names
    the tool to call, whether it is offered or not.
    """
    return f"SCRIPT: {json.dumps(list(actions))}"


def obey(ask: Ask) -> Turn:
    """Does what the last script in the user's words says; without one it only talks."""
    written = _SCRIPT.findall("\n".join(ask.users))
    return _turn(json.loads(written[-1]), ask) if written else Say()


def play(*turns: Turn) -> Scenario:
    """A scenario of fixed turns, one for each tool result; the last one is repeated."""
    return lambda ask: turns[min(ask.step, len(turns) - 1)]


def first(count: int, turn: Turn, then: Scenario) -> Scenario:
    """One turn for the first requests of the scenario, another scenario for the later ones."""
    return lambda ask: turn if ask.earlier < count else then(ask)


def _turn(actions: Sequence[Mapping[str, Any]], ask: Ask) -> Turn:
    if ask.step >= len(actions):
        return Say()
    action = actions[ask.step]
    tool = action.get("tool")
    if "write" in action:
        return Use("write", path=action["write"], content=action.get("content", ""), tool=tool)
    if "read" in action:
        return Use("read", path=action["read"], tool=tool)
    if "run" in action:
        return Use("run", command=action["run"], tool=tool)
    return Say(action.get("say", "Done."))


_RATE_LIMITED = Refuse("rate_limited", RETRY_AFTER_SECONDS)
SCENARIOS: Mapping[str, Scenario] = {
    "obey": obey,
    "text": play(Say("Nothing had to be done.")),
    "edit": play(Use("write", path="made", content="done"), Say()),
    "command": play(Use("run", command="printf done > made"), Say()),
    "rate-limit-once": first(1, Refuse("rate_limited", 1), obey),
    "rate-limited": play(_RATE_LIMITED),
    "broken-stream": play(Break()),
    "broken-stream-once": first(1, Break(), obey),
    "auth-failed": play(Refuse("auth_failed")),
    "context-full": play(Refuse("context_full")),
    "overloaded": play(Refuse("overloaded")),
    "hang": play(Hang()),
}
