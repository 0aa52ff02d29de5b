"""What each setting may be: how a value is checked, and how text from the environment is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.config.acp_program import SERVICES
from harness.model import allowlists, duration, error_actions, globs, limits
from harness.model.late import dataclass

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_CHOSEN_MODEL = re.compile(r"(?:openai|anthropic|scripted):[^\x00-\x1f\x7f]{1,500}")
_ADDRESS = re.compile(r"https?://[^\s@\x00-\x1f\x7f]{1,500}")
# Tools that a model gets only when the user enables them: they start programs of the model's choice.
GUARDED_TOOLS = ("run", "shell")
_MODEL = re.compile(r"[A-Za-z0-9][\w./:@+-]{0,200}")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Kind:
    """`check` turns a TOML value into the setting, `from_text` an environment variable into a TOML value.

    Both raise ValueError with what is expected. A `personal` one is refused in the project's file: it decides where a
    key goes or what a model may start, and whoever writes the repository must not decide that.
    """

    default: Any
    check: Callable[[Any], Any]
    from_text: Callable[[str], Any]
    meaning: str
    personal: bool = False


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value

    return check


def _choice(*names: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return str(value)

    return check


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004 - one error type for every wrong value
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError('must be a list of texts, such as ["a", "b"]')
    if any("\x00" in item for item in value):
        raise ValueError("must not hold NUL characters")
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not the name of an environment variable")
    return names


def _inside(value: Any) -> tuple[str, ...]:
    paths = _texts(value)
    wrong = [path for path in paths if path.startswith("/") or ".." in path.split("/") or "\\" in path]
    if wrong:
        raise ValueError(f"{wrong[0]!r} must lie inside the repository, written with slashes")
    return paths


def _globs(value: Any) -> tuple[str, ...]:
    patterns = _texts(value)
    for pattern in patterns:
        wrong = globs.problem(pattern)
        if wrong is not None:
            raise ValueError(f"{pattern!r:.120} {wrong[0]}: {wrong[1]}")
    return patterns


def _folder(value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value).strip() or "\x00" in str(value):
        raise ValueError("must be a path")
    try:
        path = Path(value).expanduser()
    except RuntimeError as error:
        raise ValueError(f"has no home directory to stand for ~: {error}") from error
    if not path.is_absolute():
        raise ValueError("must be an absolute path or start with ~")
    return path


def _milliseconds(value: Any) -> int:
    if not isinstance(value, str | int | float):
        raise ValueError("must be a duration: 500ms, 2s, 1m30s or a number of seconds")  # noqa: TRY004 - as above
    return duration.parse_ms(value)


def _model(value: Any) -> str:
    if not isinstance(value, str) or not _CHOSEN_MODEL.fullmatch(value):
        raise ValueError("must be openai:NAME, anthropic:NAME or scripted:FILE")
    return value


def _address(value: Any) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ValueError("must be an address that starts with http:// or https:// and holds no password")
    return value.rstrip("/")


def _tools(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    wrong = [name for name in names if name not in GUARDED_TOOLS]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not one of {', '.join(GUARDED_TOOLS)}")
    return names


def argument_list(value: Any) -> tuple[str, ...]:
    """A command that is run as it is; raises ValueError."""
    if isinstance(value, str) or not _texts(value):
        raise ValueError('must be a list of arguments, such as ["my-agent", "--headless"]')
    return _texts(value)


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        raise ValueError("must be a text")
    return value


def _services(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    wrong = [name for name in names if name not in SERVICES]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(SERVICES)}")
    return names


def model_name(value: Any) -> str:
    """A model as its service calls it; raises ValueError."""
    if not isinstance(value, str) or not _MODEL.fullmatch(value):
        raise ValueError("must be the name of a model, such as provider/model-1")
    return value


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _pairs(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in _commas(text))


def _personas(value: Any) -> Any:
    from harness.model import personas  # noqa: PLC0415 - contracts come with it, which few commands need

    return personas.parse(value)


def _table(text: str) -> Any:
    import json  # noqa: PLC0415 - rarely set in the environment

    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("must be a JSON object") from None


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError("must be a number greater than 0")
    return float(value)


def _decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError("must be true or false")
    return _TRUTH[text.lower()]


def _commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


KINDS: dict[str, Kind] = {
    "jobs": Kind(0, _whole(0, 1024), _number, "steps at once; 0 is one for each core"),
    "sandbox": Kind("auto", _choice("auto", "bwrap", "none"), str, "how programs of a step are confined"),
    "reports": Kind("local", _choice("local", "commit"), str, "where reports go after integration"),
    "keep": Kind(False, _flag, _truth, "leave workspaces of finished steps on disk"),
    "strict_parent": Kind(False, _flag, _truth, "a change in the user's checkout during a step fails the step"),
    "speculate": Kind(0, _whole(0, 1024), _number, "parked steps whose gates may begin before their turn; 0 is none"),
    "state_home": Kind(None, _folder, str, "where workspaces live"),
    "env_pass": Kind((), _names, _commas, "environment variables that children see besides the fixed ones"),
    "workspace.kind": Kind(
        "auto", _choice("auto", "overlay", "checkout", "sparse"), str, "how the files of a workspace are made"
    ),
    "workspace.copy": Kind((), _inside, _commas, "untracked files that are copied into each workspace"),
    "workspace.link": Kind((), _inside, _commas, "untracked files that are linked into each workspace"),
    "workspace.sparse": Kind((), _globs, _commas, "what a sparse workspace holds besides what its step owns"),
    "timeout": Kind(limits.ATTEMPT_TIMEOUT_MS, _milliseconds, str, "time for one attempt where the plan says none"),
    "retries": Kind(
        limits.MAX_RETRIES, _whole(0, limits.RETRY_CEILING), _number, "retries of a step where the plan says none"
    ),
    "backoff_base": Kind(limits.BACKOFF_BASE_MS, _milliseconds, str, "wait before the first retry; doubles after it"),
    "resume_sessions": Kind(False, _flag, _truth, "a retry carries on with the agent's session where it can"),
    "git_timeout": Kind(limits.GIT_MS, _milliseconds, str, "time for one snapshot or one merge of a step"),
    "recoveries": Kind(
        limits.RECOVERIES, _whole(0, 100), _number, "coordinator deaths in one step before it is parked"
    ),
    "checkpoint_every": Kind(
        limits.CHECKPOINT_MS, _milliseconds, str, "time between checkpoints of a run that goes on"
    ),
    "errors": Kind({}, error_actions.parse, _pairs, "what each kind of error leads to"),
    "personas": Kind({}, _personas, _table, "what each persona may use at most", personal=True),
    "budget.tokens": Kind(None, _whole(1, 10**12), _number, "tokens that a run may use"),
    "budget.cost_usd": Kind(None, _amount, _decimal, "money that a run may use, where prices are known"),
    "budget.attempts": Kind(None, _whole(1, 10**6), _number, "attempts that a run may make, nested ones included"),
    "budget.wall_time": Kind(None, _milliseconds, str, "time that a run may be driven"),
    "budget.max_depth": Kind(None, _whole(0, limits.RUN_DEPTH), _number, "levels of nested runs"),
    "budget.max_steps": Kind(
        None, _whole(1, limits.RUN_DECISIONS), _number, "decisions of a run, nested ones included"
    ),
    "budget.max_reentry": Kind(
        None, _whole(1, limits.RUN_REENTRY), _number, "nested runs of one task, and plans of one goal"
    ),
    "allowlists": Kind({}, allowlists.parse, _table, "the nodes that each persona may be sent to", personal=True),
    "model.name": Kind(None, _model, str, "the language model: openai:NAME, anthropic:NAME or scripted:FILE"),
    "model.base_url": Kind(None, _address, str, "where the model is, if not at its provider", personal=True),
    "model.structured": Kind(
        "tool", _choice("tool", "native", "prompted"), str, "how the model is asked for an answer of a certain form"
    ),
    "model.timeout": Kind(limits.MODEL_CALL_MS, _milliseconds, str, "time for one answer of the model"),
    "builtin.turns": Kind(limits.BUILTIN_TURNS, _whole(1, 1000), _number, "model calls of one attempt"),
    "builtin.tokens": Kind(
        limits.BUILTIN_TOKENS, _whole(1, 1_000_000_000), _number, "tokens that one attempt may read and write"
    ),
    "builtin.context": Kind(
        limits.BUILTIN_CONTEXT, _whole(1000, 10_000_000), _number, "tokens of a conversation before it is compacted"
    ),
    "builtin.enable": Kind((), _tools, _commas, "guarded tools that the built-in agent may use", personal=True),
    "telemetry.metrics_file": Kind(None, _folder, str, "a file of metrics, kept during runs", personal=True),
    "telemetry.otlp": Kind(None, _address, str, "the collector that gets the trace of each run", personal=True),
}

# The fields of [agents.<name>].
AGENT_FIELDS: dict[str, Callable[[Any], Any]] = {
    "command": argument_list,
    "model": model_name,
    "acp": argument_list,
    "mode": _word,
    "auth": _word,
    "env": _names,
    "serves": _services,
}
_VARIABLES = {"model.name": "ORCHESTRIX_MODEL"}


def variable(key: str) -> str:
    """The environment variable of a setting."""
    return _VARIABLES.get(key, "ORCHESTRIX_" + key.upper().replace(".", "_"))
