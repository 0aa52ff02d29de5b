"""Settings: defaults < user file < project file < `ORCHESTRIX_*` < flags; every value knows where it came from.

The project file is repository content: whoever writes the repository chooses its values, so the source is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from harness.config import reading
from harness.config.acp_program import AcpProgram, programs
from harness.config.setting_kinds import AGENT_FIELDS, KINDS, variable
from harness.errors import ConfigInvalid
from harness.model import limits
from harness.model.late import dataclass

PROJECT_FILE = Path(".orchestrix") / "config.toml"
_AGENT = re.compile(rf"agents\.([a-z0-9][a-z0-9_-]{{0,62}})\.({'|'.join(AGENT_FIELDS)})")
_TABLES = {"workspace", "model", "builtin", "budget", "telemetry"}
_DURATIONS = {"timeout", "backoff_base", "git_timeout", "model.timeout", "budget.wall_time", "checkpoint_every"}
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked; `sources` says for each key of the files where its value was set."""

    jobs: int
    sandbox: Literal["auto", "bwrap", "none"]
    workspace_kind: Literal["auto", "overlay", "checkout", "sparse"]
    reports: Literal["local", "commit"]
    keep: bool
    strict_parent: bool
    speculate: int
    state_home: Path
    env_pass: tuple[str, ...]
    workspace_copy: tuple[str, ...]
    workspace_link: tuple[str, ...]
    workspace_sparse: tuple[str, ...]
    backoff_base_ms: int
    git_timeout_ms: int
    recoveries: int
    checkpoint_every_ms: int
    errors: Mapping[str, str]
    personas: Mapping[str, Mapping[str, Any]]
    timeout_ms: int
    retries: int
    budget_tokens: int | None
    budget_cost_usd: float | None
    budget_attempts: int | None
    budget_wall_time_ms: int | None
    budget_max_depth: int | None
    budget_max_steps: int | None
    budget_max_reentry: int | None
    allowlists: Mapping[str, tuple[str, ...]]
    resume_sessions: bool
    model_name: str | None
    model_base_url: str | None
    model_structured: Literal["tool", "native", "prompted"]
    model_timeout_ms: int
    builtin_turns: int
    builtin_tokens: int
    builtin_context: int
    builtin_enable: tuple[str, ...]
    telemetry_metrics_file: Path | None
    telemetry_otlp: str | None
    agents: Mapping[str, tuple[str, ...]]
    acp_agents: Mapping[str, AcpProgram]
    models: Mapping[str, str]
    sources: Mapping[str, str]

    @property
    def parallel(self) -> int:
        """Steps at once, `jobs` or one for each core that this process may use."""
        return self.jobs or len(os.sched_getaffinity(0))

    @property
    def budget(self) -> dict[str, int | float]:
        """The budgets that are set, by the names that the log uses."""
        given = {
            "tokens": self.budget_tokens,
            "cost_usd": self.budget_cost_usd,
            "attempts": self.budget_attempts,
            "wall_ms": self.budget_wall_time_ms,
            "max_depth": self.budget_max_depth,
            "max_steps": self.budget_max_steps,
            "max_reentry": self.budget_max_reentry,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _acp_rows(self) -> Iterator[tuple[str, Any]]:
        for name, program in sorted(self.acp_agents.items()):
            yield f"agents.{name}.acp", program.command
            for field in ("mode", "auth", "env", "serves"):
                yield f"agents.{name}.{field}", getattr(program, field)

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """Key, value and source of every setting, for people and JSON."""
        values = {
            **{key: getattr(self, _field(key)) for key in KINDS},
            **{f"agents.{name}.command": command for name, command in sorted(self.agents.items())},
            **{key: value for key, value in self._acp_rows() if key in self.sources},
            **{f"agents.{name}.model": model for name, model in sorted(self.models.items())},
        }
        for key, value in values.items():
            shown = list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
            timed = key in _DURATIONS and value is not None
            yield key, f"{value}ms" if timed else shown, self.sources[key]


def load(root: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """The settings for a checkout (None: outside of one); a flag that is None was not given.

    Raises ConfigInvalid naming file, line and key.
    """
    environ = os.environ if environ is None else environ
    layers = [_file(_user_file(environ))]
    if root is not None:
        layers.append(_impersonal(_file(root / PROJECT_FILE)))
    layers += [_environment(environ), _flags(flags)]
    values: dict[str, Any] = {key: kind.default for key, kind in KINDS.items()}
    values["state_home"] = default_state_home(environ)
    sources = dict.fromkeys(KINDS, "default")
    for layer in layers:
        for key, value, source in layer:
            values[key], sources[key] = value, source
    fields = {(match[1], match[2]): values.pop(key) for key in list(values) if (match := _AGENT.fullmatch(key))}
    try:
        speaking = programs(fields)
    except ValueError as error:
        raise ConfigInvalid(str(error), hint="see `orchestrix config show`") from error
    return Settings(
        **{_field(key): value for key, value in values.items()},
        agents={name: command for (name, field), command in fields.items() if field == "command"},
        models={name: model for (name, field), model in fields.items() if field == "model"},
        acp_agents=speaking,
        sources=sources,
    )


def is_configured(root: Path, environ: Mapping[str, str]) -> bool:
    """Whether anything but the defaults can hold for a checkout; reads no file."""
    files = (_user_file(environ), root / PROJECT_FILE)
    return any(name.startswith("ORCHESTRIX_") for name in environ) or any(path.exists() for path in files)


def _field(key: str) -> str:
    return key.replace(".", "_") + ("_ms" if key in _DURATIONS else "")


def _user_file(environ: Mapping[str, str]) -> Path:
    return _user_folder(environ) / "config.toml"


def _user_folder(environ: Mapping[str, str]) -> Path:
    return _xdg(environ, "XDG_CONFIG_HOME", ".config") / "orchestrix"


def profile_folders(root: Path, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Where users and projects keep profiles of agent programs."""
    return _user_folder(os.environ if environ is None else environ) / "agents", root / PROJECT_FILE.parent / "agents"


def default_state_home(environ: Mapping[str, str]) -> Path:
    """Where workspaces and crash files live unless the settings say otherwise."""
    return _xdg(environ, "XDG_STATE_HOME", ".local/state") / "orchestrix"


def _xdg(environ: Mapping[str, str], name: str, fallback: str) -> Path:
    """A base directory; the XDG specification wants relative values ignored."""
    given = environ.get(name, "")
    return Path(given) if given.startswith("/") else Path(environ.get("HOME") or Path.home()) / fallback


def _environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    for key, kind in KINDS.items():
        name = variable(key)
        if name in environ:
            try:
                yield key, kind.check(kind.from_text(environ[name])), f"environment {name}"
            except ValueError as error:
                raise ConfigInvalid(f"environment {name}: {error}", hint=f"unset {name} or correct it") from error


def _flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for key, value in flags.items():
        if value is not None:
            flag = "--" + key.removesuffix(".kind").replace("_", "-")
            try:
                yield key, KINDS[key].check(value), f"flag {flag}"
            except ValueError as error:
                raise ConfigInvalid(f"{flag}: {error}", hint=KINDS[key].meaning) from error


def _file(path: Path) -> Iterator[tuple[str, Any, str]]:
    try:
        text, _ = reading.text(path, limits.CONFIG_BYTES)
    except reading.Unreadable as error:
        if error.missing:
            return
        raise ConfigInvalid(f"{path} {error}", hint="correct or remove the file") from error
    for key, value in _flattened(_parsed(path, text)):
        place = f"{path}:{_line(text, key)}"
        yield key, _checked(place, key, value), place


def _impersonal(layer: Iterator[tuple[str, Any, str]]) -> Iterator[tuple[str, Any, str]]:
    for key, value, source in layer:
        if key in KINDS and KINDS[key].personal:
            raise ConfigInvalid(
                f"{source}: {key} cannot be set by a repository",
                hint=f"set it in your own settings file, or by {variable(key)}",
            )
        yield key, value, source


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most starts have no settings file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{path}: {error}", hint="the file is TOML: key = value") from error
    except RecursionError as error:
        raise ConfigInvalid(f"{path}: is nested too deeply", hint="the file is TOML: key = value") from error


def _flattened(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key == "agents" and isinstance(value, dict):
            for name, agent in value.items():
                inner = agent if isinstance(agent, dict) and agent else {"": agent}
                yield from ((f"agents.{name}.{field}".removesuffix("."), item) for field, item in inner.items())
        elif key in _TABLES and isinstance(value, dict):
            yield from ((f"{key}.{field}", item) for field, item in value.items())
        else:
            yield key, value


def _checked(place: str, key: str, value: Any) -> Any:
    agent = _AGENT.fullmatch(key)
    check = AGENT_FIELDS[agent[2]] if agent else KINDS[key].check if key in KINDS else None
    if check is None:
        raise ConfigInvalid(f"{place}: unknown setting {key!r:.80}", hint=_instead(key))
    try:
        return check(value)
    except ValueError as error:
        raise ConfigInvalid(f"{place}: {key}: {error}", hint="see `orchestrix config show`") from error


def _instead(key: str) -> str:
    if key.startswith("agents"):
        return 'an agent is [agents.<name>], in lower case, with command = [...], model = "name" or acp = [...]'
    import difflib  # noqa: PLC0415 - good settings do not pay for it

    close = [f"{key}.kind"] if f"{key}.kind" in KINDS else difflib.get_close_matches(key, KINDS, n=1)
    return (
        f"did you mean {close[0]}?"
        if close
        else f"settings: {', '.join(KINDS)}, agents.<name>.command, agents.<name>.model, agents.<name>.acp"
    )


def _line(text: str, key: str) -> int:
    """Where the key seems to be set; 1 when it is written in a way that is not recognised."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = header[1] + "."
        name = line.split("=", 1)[0].strip() if "=" in line else ""
        if table + name == key or (not name and table == key + "."):
            return number
    return 1
