"""A script of model answers: a YAML or JSON list, read as strictly as a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from harness.config import json_tokens, reading, tree, yaml_tokens
from harness.errors import ConfigInvalid, ModelFault
from harness.model import limits
from harness.ports import Usage


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Call(_Part):
    tool: str
    arguments: dict[str, Any] = {}


class Fault(_Part):
    kind: ModelFault
    message: str = "the script says so"
    retry_after_ms: int | None = None


class Spent(_Part):
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    def usage(self) -> Usage:
        """As the usage of one call."""
        return Usage(1, self.input_tokens, self.output_tokens, self.cost_usd)


class Entry(_Part):
    """One answer, and what it answers: every condition that is given must hold.

    `shape` is the name of the type that is asked for, `contains` stands in the prompt, `turn` counts how often the model
    has spoken in the conversation; `times` is how often the entry serves, 0 without end.
    """

    shape: str | None = None
    contains: str | list[str] = []
    turn: Annotated[int, Field(ge=0)] | None = None
    times: Annotated[int, Field(ge=0)] = 1
    answer: Any = None
    say: str | None = None
    calls: list[Call] | None = None
    fail: Fault | None = None
    usage: Spent = Spent()

    @model_validator(mode="after")
    def _one_answer(self) -> Entry:
        given = [bool({"answer"} & self.model_fields_set), self.speaks, self.fail is not None]
        if sum(given) != 1:
            raise ValueError("an entry has exactly one of answer, say with or without calls, fail")
        return self

    @property
    def speaks(self) -> bool:
        """Whether it is a turn of a conversation."""
        return self.say is not None or self.calls is not None

    @property
    def texts(self) -> list[str]:
        return [self.contains] if isinstance(self.contains, str) else self.contains


_SCRIPT = TypeAdapter(list[Entry])


def load(path: Path) -> list[Entry]:
    """The entries of a file; raises ConfigInvalid, naming the place of the first mistake."""
    try:
        text, _ = reading.text(path, limits.MODEL_SCRIPT_BYTES)
    except reading.Unreadable as error:
        raise ConfigInvalid(
            f"the model's script {path} {error}", hint="give scripted:FILE a list of answers"
        ) from error
    tokens = json_tokens.tokens if path.suffix == ".json" else yaml_tokens.tokens
    try:
        parsed = tree.build(tokens(text))
    except tree.Fault as fault:
        raise _wrong(path, fault) from fault
    if parsed.faults:
        raise _wrong(path, parsed.faults[0])
    try:
        return _SCRIPT.validate_python(parsed.data)
    except ValidationError as error:
        first = error.errors()[0]
        raise _wrong(path, tree.Fault(parsed.place(first["loc"]), first["msg"])) from error


def _wrong(path: Path, fault: tree.Fault) -> ConfigInvalid:
    place = f"{path}:{fault.place.line}:{fault.place.column}"
    return ConfigInvalid(f"{place}: {fault.message}", hint=fault.suggestion or "see docs/how-to/use-a-model.md")
