"""An agent that speaks the Agent Client Protocol, as the settings name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.late import dataclass

_OPTIONS = ("mode", "auth", "env", "serves")
SERVICES = ("read", "write", "terminal")


@dataclass(frozen=True, slots=True)
class AcpProgram:
    """`mode` is the session mode in which it asks, `auth` how it logs in, `serves` what it may have done by us.

    `env` names variables of the user that it gets; their values never reach a log.
    """

    command: tuple[str, ...]
    mode: str | None = None
    auth: str | None = None
    env: tuple[str, ...] = ()
    serves: tuple[str, ...] = SERVICES


def programs(fields: Mapping[tuple[str, str], Any]) -> dict[str, AcpProgram]:
    """The agents among settings by name and field; raises ValueError with what does not fit together."""
    named = {name: command for (name, field), command in fields.items() if field == "acp"}
    for name, field in fields:
        if field == "command" and name in named:
            raise ValueError(f"agents.{name} has both `command` and `acp`")
        if field in _OPTIONS and name not in named:
            raise ValueError(f"agents.{name}.{field} is for an agent that has `acp`")
    options = {name: {field: fields[name, field] for field in _OPTIONS if (name, field) in fields} for name in named}
    return {name: AcpProgram(command, **options[name]) for name, command in named.items()}
