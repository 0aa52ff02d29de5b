"""What a wire format can do, and how its events become a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from harness.agents.conformance.turns import Ask, Refuse, Reply, Tool

# Data is JSON, except for the one word that ends a stream of Chat Completions.
Event = tuple[str | None, Mapping[str, Any] | str]


class Wire(Protocol):
    """One wire format, as a module with these functions."""

    def ask(self, body: Mapping[str, Any], model: str) -> Ask:
        """The request in the script's words."""

    def whole(self, ask: Ask, reply: Reply) -> Mapping[str, Any]:
        """The answer as one JSON document."""

    def events(self, ask: Ask, reply: Reply) -> Iterable[Event]:
        """The answer as server-sent events: name and data."""

    def error(self, refusal: Refuse) -> tuple[int, Mapping[str, Any]]:
        """HTTP status and body of a complaint."""


def encoded(event: Event) -> bytes:
    """One server-sent event."""
    name, data = event
    head = f"event: {name}\n" if name else ""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{head}data: {text}\n\n".encode()


def words(content: Any, *kinds: str) -> str:
    """The text of a message whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text", "") for part in parts if isinstance(part, dict) and part.get("type") in {*kinds, "text"}]
    return "\n".join(text for text in texts if isinstance(text, str))


class Reading:
    """What was said in a request, message by message; a plain message of the user makes results old."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.users: list[str] = []
        self.results: list[str] = []

    def user(self, text: str) -> None:
        self.users.append(text)
        self.results = []

    def ask(self, model: str, tools: Iterable[Tool], *, stream: bool) -> Ask:
        return Ask(model, stream, "\n".join(self.system), tuple(self.users), tuple(self.results), tuple(tools))
