"""What a scripted model is asked and what it answers, in no wire format's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from harness.model.late import dataclass

Act = Literal["write", "read", "run"]
Complaint = Literal["rate_limited", "auth_failed", "context_full", "overloaded"]


@dataclass(frozen=True, slots=True)
class Say:
    """Plain text: the turn ends."""

    text: str = "Done."


@dataclass(frozen=True, slots=True)
class Use:
    """One tool call: by what it does, or by the name of a tool where it must be exactly that one."""

    act: Act
    path: str = ""
    content: str = ""
    command: str = ""
    tool: str | None = None

    @property
    def as_command(self) -> str:
        """The same by a shell, for programs that have no other tool; a file is shown by it, not made anew."""
        from shlex import quote  # noqa: PLC0415 - few programs need it

        if self.act == "run":
            return self.command
        if self.act == "read":
            return f"cat {quote(self.path)}"
        return f'mkdir -p "$(dirname {quote(self.path)})" && printf %s {quote(self.content)} > {quote(self.path)}'


@dataclass(frozen=True, slots=True)
class Answer:
    """A structured answer: JSON as text, or the arguments of the tool that the caller offers for it."""

    value: Any
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error of the service instead of an answer."""

    complaint: Complaint
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """An answer that stops in the middle."""

    text: str = "This sentence has no"


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer at all, until the server is closed."""


Turn = Say | Use | Answer | Refuse | Break | Hang


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the program offers it; a free-form one takes text instead of JSON."""

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    free_form: bool = False

    @classmethod
    def from_schema(cls, name: str, schema: Mapping[str, Any] | None) -> Tool:
        shape = schema or {}
        return cls(name, shape.get("properties") or {}, tuple(shape.get("required") or ()))


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: what was said, which tools there are, and how many have answered since.

    `earlier` counts the requests of the scenario before this one; it also makes ids in answers unique, which programs
    that take up a session rely on.
    """

    model: str
    stream: bool
    system: str = ""
    users: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    earlier: int = 0

    @property
    def step(self) -> int:
        """How many tools have answered since the last plain message of the user: the server keeps no session."""
        return len(self.results)

    @property
    def everything(self) -> str:
        """The system prompt and what users said, as one text to look for things in."""
        return "\n".join((self.system, *self.users))


@dataclass(frozen=True, slots=True)
class Text:
    """A resolved answer: words."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A resolved answer: a call of a tool that the program offers."""

    name: str
    arguments: Mapping[str, Any]
    free_form: str | None = None


Reply = Text | Call
INPUT_TOKENS = 100
OUTPUT_TOKENS = 20
