"""The scripted model server under the name that tests use; it lives in the package because `agents check` needs it."""

from __future__ import annotations

from harness.agents.conformance.scenarios import SCENARIOS, Scenario, first, obey, play, script
from harness.agents.conformance.server import ModelServer, Request
from harness.agents.conformance.turns import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Answer,
    Ask,
    Break,
    Hang,
    Refuse,
    Say,
    Turn,
    Use,
)

__all__ = [
    "INPUT_TOKENS",
    "OUTPUT_TOKENS",
    "SCENARIOS",
    "Answer",
    "Ask",
    "Break",
    "Hang",
    "ModelServer",
    "Refuse",
    "Request",
    "Say",
    "Scenario",
    "Turn",
    "Use",
    "first",
    "obey",
    "play",
    "script",
]
