"""State slices: how a node receives them and gives them back, and how partial ones are merged."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

State = dict[str, Any]
Internal = dict[str, Any]

INTERNAL = "_internal"
RESPONSE = "response"

_log = logging.getLogger("harness.supervisor")


class NodeInputs(BaseModel):
    """The slices that a node's contract reads, copied, so that a node cannot change the state by accident."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    def get_slice(self, name: str) -> dict[str, Any]:
        """One slice; an undeclared one is empty and is reported in the log."""
        slices = self.model_extra or {}
        if name not in slices:
            _log.warning("a node asked for slice %r, which its contract does not read", name)
            return {}
        found: dict[str, Any] = slices[name]
        return found


class NodeOutputs(BaseModel):
    """The slices that a node changes, each a partial mapping."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    def to_state_updates(self) -> dict[str, Any]:
        """The changed slices as plain data; a slice of None says nothing and is left out."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


def internal_of(state: State) -> Internal:
    """The `_internal` slice, or an empty one where the state has none that can be used."""
    internal = state.get(INTERNAL)
    return internal if isinstance(internal, dict) else {}


def response_type_of(state: State) -> Any:
    response = state.get(RESPONSE)
    return response.get("response_type") if isinstance(response, dict) else None


def isolate(value: Any) -> Any:
    """A copy of the containers; what they contain besides containers is shared."""
    if isinstance(value, dict):
        return {key: isolate(item) for key, item in value.items()}
    if isinstance(value, list):
        return [isolate(item) for item in value]
    return value


def isolated(state: State, names: Iterable[str] | None = None) -> State:
    """The named slices (None: all) copied, a missing one empty; `_internal` two levels deep, because its trace is long."""
    copy: State = {}
    for name in state if names is None else names:
        value = state.get(name)
        if name == INTERNAL and isinstance(value, dict):
            copy[name] = {key: item.copy() if isinstance(item, (dict, list)) else item for key, item in value.items()}
        else:
            copy[name] = {} if value is None else isolate(value)
    return copy


def merged(current: Any, update: Any) -> Any:
    """A slice with an update applied: mappings are merged one level deep, anything else is replaced."""
    if isinstance(current, dict) and isinstance(update, dict):
        return {**current, **update}
    return update
