"""From `provider:name` to a model: one literal table, and clear words where it cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from harness.errors import ConfigInvalid, EnvironmentProblem
from harness.models.access import Access
from harness.ports import Model

_FORMS = "openai:NAME, anthropic:NAME or scripted:FILE"


def _of_a_provider(access: Access) -> Model:
    from harness.models.pydantic_ai import PydanticAiModel  # noqa: PLC0415 - a scripted model needs no library

    try:
        return PydanticAiModel(access)
    except ImportError as error:
        raise EnvironmentProblem(
            f"the library for {access.label} is not installed", hint="pip install 'orchestrix-harness[model]'"
        ) from error


def _scripted(access: Access) -> Model:
    from harness.models.scripted import ScriptedModel  # noqa: PLC0415 - only where it is used

    return ScriptedModel.from_file(Path(access.name))


_KINDS: Mapping[str, Callable[[Access], Model]] = {
    "openai": _of_a_provider,
    "anthropic": _of_a_provider,
    "scripted": _scripted,
}


def split(name: str) -> tuple[str, str]:
    """Provider and model; raises ConfigInvalid for anything else."""
    provider, colon, model = name.partition(":")
    if not colon or not model or provider not in _KINDS:
        raise ConfigInvalid(f"{name!r:.100} names no model", hint=f"write {_FORMS}")
    return provider, model


def make(access: Access) -> Model:
    """The model; raises EnvironmentProblem where its library is missing, ConfigInvalid where its script is wrong."""
    return _KINDS[access.provider](access)
