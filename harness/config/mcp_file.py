"""`.mcp.json` of a repository, and whether its reader trusts it: servers are programs that somebody else chose."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.config import reading
from harness.errors import ConfigInvalid
from harness.model import limits
from harness.model.late import dataclass
from harness.model.plan import EnvName, Slug, Text, Word

NAME = ".mcp.json"


class McpServer(BaseModel):
    """A server on stdin and stdout; `fallback` names the tool to use when one of its own answers against its schema.

    Keys of other programs are left alone.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    command: Word
    args: list[Text] = Field(default_factory=list)
    env: dict[EnvName, Text] = Field(default_factory=dict)
    cwd: Word | None = None
    fallback: dict[Word, Word] = Field(default_factory=dict)

    @property
    def argv(self) -> list[str]:
        own = [self.command, *self.args]
        return own if self.cwd is None else ["sh", "-c", _IN_FOLDER, "sh", self.cwd, *own]


_IN_FOLDER = 'cd -- "$1" && shift && exec "$@"'  # the folder and the command are arguments, never shell text
_SLUG: TypeAdapter[str] = TypeAdapter(Slug)


@dataclass(frozen=True, slots=True)
class Found:
    """The servers of a checkout; `digest` changes with the file and with the place of the checkout.

    `skipped` says of every other server why it cannot be used; `enable` are guarded tools by environment, `*` for all.
    """

    servers: Mapping[str, McpServer]
    digest: str
    skipped: Mapping[str, str] = field(default_factory=dict)
    enable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def enabled(self, environ: Mapping[str, str]) -> set[str]:
        """The guarded tools that the file enables here: in `ci` where that variable is set, else in `local`."""
        return {*self.enable.get("*", ()), *self.enable.get("ci" if environ.get("CI") else "local", ())}


def read(root: Path) -> Found | None:
    """What the file says; None where there is none. Raises ConfigInvalid where it cannot be read as such a file.

    Other programs share the file: a server that cannot be used here is skipped with the reason, never an error.
    """
    path = root / NAME
    try:
        text, raw = reading.text(path, limits.CONFIG_BYTES)
    except reading.Unreadable as error:
        if error.missing:
            return None
        raise ConfigInvalid(f"{path} {error}", hint="correct or remove the file") from error
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(f"{path} is no JSON: {error!s:.200}", hint="correct or remove the file") from error
    given = data.get("mcpServers", {}) if isinstance(data, dict) else None
    if not isinstance(given, dict):
        raise ConfigInvalid(f"{path} names no servers", hint='it is {"mcpServers": {"NAME": {"command": ...}}}')
    servers: dict[str, McpServer] = {}
    skipped: dict[str, str] = {}
    for name, server in given.items():
        made = _server(name, server)
        if isinstance(made, McpServer):
            servers[name] = made
        else:
            skipped[name] = made
    digest = hashlib.sha256(bytes(root.resolve()) + b"\0" + raw).hexdigest()
    return Found(servers, digest, skipped, _enable(data))


def _server(name: str, given: Any) -> McpServer | str:
    """The server, or why it cannot be used here."""
    if not isinstance(given, dict):
        return "it is no table"
    if given.get("disabled") is True:
        return "it is disabled"
    kind = given.get("type", "stdio")
    if kind != "stdio" or "command" not in given:
        return f"only servers that a command starts can be used, not {'a url' if 'url' in given else f'{kind!r:.40}'}"
    try:
        _SLUG.validate_python(name)
        return McpServer.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'its name'}: {first['msg']}"


def _enable(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """`orchestrix.enable`: a list for every environment, or lists by environment; anything else enables nothing."""
    own = data.get("orchestrix")
    given = own.get("enable") if isinstance(own, dict) else None
    by_environment = {"*": given} if isinstance(given, list) else given if isinstance(given, dict) else {}
    return {
        str(name): tuple(tool for tool in tools if isinstance(tool, str))
        for name, tools in by_environment.items()
        if isinstance(tools, list)
    }


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
