"""`.mcp.json` of a repository, and whether its reader trusts it: servers are programs that somebody else chose."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.config import reading
from harness.errors import ConfigInvalid
from harness.model import limits
from harness.model.late import dataclass
from harness.model.plan import EnvName, Slug, Text, Word

NAME = ".mcp.json"


class McpServer(BaseModel):
    """A server on stdin and stdout; `fallback` names the tool to use when one of its own answers against its schema."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    command: Word
    args: list[Text] = Field(default_factory=list)
    env: dict[EnvName, Text] = Field(default_factory=dict)
    fallback: dict[Word, Word] = Field(default_factory=dict)

    @property
    def argv(self) -> list[str]:
        return [self.command, *self.args]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    mcpServers: dict[Slug, McpServer]  # noqa: N815 - the file's own spelling


@dataclass(frozen=True, slots=True)
class Found:
    """The servers of a checkout; `digest` changes with the file and with the place of the checkout."""

    servers: Mapping[str, McpServer]
    digest: str


def read(root: Path) -> Found | None:
    """What the file says; None where there is none. Raises ConfigInvalid."""
    path = root / NAME
    try:
        text, raw = reading.text(path, limits.CONFIG_BYTES)
    except reading.Unreadable as error:
        if error.missing:
            return None
        raise ConfigInvalid(f"{path} {error}", hint="correct or remove the file") from error
    try:
        servers = _File.model_validate_json(text).mcpServers
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        hint = "servers are started by `command` and `args`; others cannot be used here"
        raise ConfigInvalid(f"{path}: {place}: {first['msg']}", hint=hint) from error
    return Found(servers, hashlib.sha256(bytes(root.resolve()) + b"\0" + raw).hexdigest())


def trusted(found: Found, environ: Mapping[str, str]) -> bool:
    """Whether the user trusted exactly this file in exactly this place."""
    try:
        text, _ = reading.text(_list(environ), limits.CONFIG_BYTES)
    except reading.Unreadable:
        return False
    return found.digest in text.split()


def trust(found: Found, environ: Mapping[str, str]) -> None:
    """Remembers the digest among the user's own settings."""
    path = _list(environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{found.digest}\n".encode())
    finally:
        os.close(handle)


def _list(environ: Mapping[str, str]) -> Path:
    given = environ.get("XDG_CONFIG_HOME", "")
    home = Path(given) if given.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".config"
    return home / "orchestrix" / "trusted-mcp"
