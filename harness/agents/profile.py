"""A profile: everything that is known of one agent program, as data. One TOML file, strict, without code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from harness.config import reading
from harness.errors import ConfigInvalid
from harness.model import limits
from harness.model.contract import DEFAULT_TOOLS
from harness.model.plan import EnvName, Slug, Text, Word

# What a template may name; everything else in braces is the file's own text.
SLOT = re.compile(
    r"\{(prompt|prompt_file|home|workspace|model|session|tools|tool|url|slug|env:[A-Za-z_][A-Za-z0-9_]*)\}"
)
_RELATIVE = re.compile(r"[^/\x00][^\x00]*")


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return text


def _inside(path: str) -> str:
    if not _RELATIVE.fullmatch(path) or ".." in path.split("/"):
        raise ValueError("must be a path below the private home, written with slashes")
    return path


Pattern = Annotated[Word, AfterValidator(_pattern)]
Inside = Annotated[Word, AfterValidator(_inside)]
Place = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_$*-]+(\.[A-Za-z0-9_$*/-]+)*$")]
ContractTool = Literal["read_file", "write_file", "edit_file", "delete_file", "move_file", "apply_patch", "run"]
Taken = Literal[
    "session_id",
    "model",
    "result",
    "error",
    "failed",
    "cost_usd",
    "turns",
    "denied",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Detect(_Part):
    """How the program says its version."""

    arguments: list[Word] = ["--version"]
    pattern: Pattern = r"\d+\.\d+[\w.+-]*"


class Given(_Part):
    """Arguments for users who set a variable."""

    variable: EnvName
    arguments: list[Word]


class Call(_Part):
    """The non-interactive call."""

    arguments: list[Text] = []
    prompt: Literal["stdin", "argument", "file"]
    model: list[Word] = []
    given: list[Given] = []


class Session(_Part):
    """How an earlier session is taken up: the arguments, and the files below the home that hold it.

    `files` is a glob; `place` is the directory that they belong into, where it depends on the workspace.
    """

    arguments: list[Word]
    files: Inside
    place: Inside | None = None


class Environment(_Part):
    """What the program sees of the user's environment, by name, and what it is told besides."""

    variables: list[EnvName] = []
    secrets: list[EnvName] = []
    one_of: list[EnvName] = []
    set: dict[EnvName, Text] = {}


class File(_Part):
    """A file that is written into the private home before the program starts."""

    path: Inside
    content: Text


class Tools(_Part):
    """The program's own tools: each is granted only if the contract allows everything that it stands for.

    `needs` names what the contract must allow for the program to be started at all. `each` and `join` make the text
    that stands for `{tools}`.
    """

    grants: dict[Word, list[ContractTool]] = {}
    needs: list[ContractTool] = []
    each: Text = "{tool}"
    join: Text = ","


class Line(_Part):
    """What a line of JSON tells, if its fields have these values; `fails_if` are patterns that make it a failure."""

    when: dict[Place, str | bool | int]
    take: dict[Taken, Place] = {}
    ends: bool = False
    fails: bool = False
    fails_if: dict[Place, Pattern] = {}
    adds: bool = False


class Document(_Part):
    """A JSON file below the private home, read when the program has ended; `succeeded` are the values of a success."""

    path: Inside
    take: dict[Taken, Place]
    succeeded: dict[Place, str | bool | int] = {}


class Output(_Part):
    """How output is read: lines of JSON, a JSON file, or text by patterns whose groups are named as what they tell.

    `ends` is a pattern for the line of plain text after which nothing more comes.
    """

    lines: list[Line] = []
    ends: Pattern | None = None
    document: Document | None = None
    text: list[Pattern] = []

    @property
    def has_result(self) -> bool:
        """Whether the program says by itself that it is done."""
        return any(line.ends for line in self.lines)


class Complaints(_Part):
    """How the program says why it cannot go on; looked for in its error, never in what it did.

    `waits` says that it waits out rate limits by itself, for longer than anybody wants to try.
    """

    rate_limited: list[Pattern] = []
    auth_failed: list[Pattern] = []
    context_full: list[Pattern] = []
    retry_after: list[Pattern] = []
    waits: bool = False


class Check(_Part):
    """How the program is pointed at a scripted model; `{url}` is the model's address."""

    environment: dict[EnvName, Text] = {}
    model: Text = ""


class Profile(_Part):
    """One program. `proven` is the version that the agents suite ran; empty where nobody has run it."""

    version: Literal[1]
    title: Text
    program: Word
    proven: Text = ""
    notes: Text = ""
    detect: Detect = Detect()
    call: Call
    session: Session | None = None
    environment: Environment = Environment()
    files: list[File] = []
    tools: Tools
    output: Output = Output()
    complaints: Complaints = Complaints()
    check: Check = Check()
    name: Slug = Field(default="unnamed", exclude=True)

    @model_validator(mode="after")
    def _grants_or_needs(self) -> Profile:
        if not self.tools.grants and not self.tools.needs:
            raise ValueError("[tools] must say what is granted by `grants`, or what the program `needs`")
        return self

    @property
    def lists_tools(self) -> bool:
        """Whether the program itself holds to a list of tools."""
        return bool(self.tools.grants)

    def granted(self, allowed: frozenset[str]) -> tuple[str, ...]:
        """The program's tools that the contract's tools cover; `run` covers nothing but itself."""
        return tuple(tool for tool, needed in self.tools.grants.items() if allowed.issuperset(needed))

    def missing(self, allowed: frozenset[str]) -> tuple[str, ...]:
        """What the program needs and the contract does not allow."""
        return tuple(tool for tool in self.tools.needs if tool not in allowed)


def filled(template: str, values: dict[str, str]) -> str:
    """The text with every known slot that has a value replaced, in one pass."""
    return SLOT.sub(lambda slot: values.get(slot[1], slot[0] if not slot[1].startswith("env:") else ""), template)


def load(path: Path) -> Profile:
    """The profile in a file, named as the file is; raises ConfigInvalid with file and field."""
    try:
        text, _ = reading.text(path, limits.CONFIG_BYTES)
        return Profile.model_validate({**tomllib.loads(text), "name": path.stem})
    except reading.Unreadable as error:
        raise ConfigInvalid(f"{path} {error}", hint="correct or remove the file") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigInvalid(f"{path}: {error}", hint="the file is TOML: key = value") from error
    except ValidationError as error:
        raise ConfigInvalid(f"{path}: {_first(error)}", hint="see docs/reference/agents.md for the fields") from error


def _first(error: ValidationError) -> str:
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def contract_tools(allowed: tuple[str, ...]) -> frozenset[str]:
    """The tools of a contract by the broker's names."""
    return frozenset("run" if tool == "shell" else tool for tool in allowed).intersection(DEFAULT_TOOLS)
