"""The boundary of a subgraph: which slices go in, which come out, and what the schemas refuse. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.supervisor.contracts import SubgraphContract
from harness.supervisor.slices import INTERNAL, Internal, State, isolated, merged


def child_state(contract: SubgraphContract, state: State, internal: Internal) -> State:
    """What the child starts with: the declared reads, copied, empty slices for its writes, and the bookkeeping."""
    empty: State = {name: {} for name in contract.writes}
    return {**empty, **isolated(state, [name for name in contract.reads if name != INTERNAL]), INTERNAL: internal}


def returned(contract: SubgraphContract, state: State, before: State, after: State) -> State:
    """The parent's state with the declared writes of the child merged in; a slice that it left alone stays as it was."""
    new = dict(state)
    for name in contract.writes:
        if name != INTERNAL and name in after and after[name] != before.get(name):
            new[name] = merged(state.get(name), after[name])
    return new


def undeclared(contract: SubgraphContract, before: State, after: State) -> list[str]:
    """The slices that the child changed without declaring them; they stay behind."""
    declared = {*contract.writes, INTERNAL}
    return sorted(name for name, value in after.items() if name not in declared and before.get(name) != value)


def input_problem(contract: SubgraphContract, child: State) -> str | None:
    """What the input schema refuses, or None."""
    return _problem(contract.input_schema, contract.reads, child)


def output_problem(contract: SubgraphContract, child: State) -> str | None:
    """What the output schema refuses, or None."""
    return _problem(contract.output_schema, contract.writes, child)


def _problem(schema: type[BaseModel] | None, names: Sequence[str], state: State) -> str | None:
    if schema is None:
        return None
    try:
        schema.model_validate(_payload(schema, names, state))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or schema.__name__
        return f"{place}: {first['msg']}"
    return None


def _payload(schema: type[BaseModel], names: Sequence[str], state: State) -> dict[str, Any]:
    slices = {name: state.get(name, {}) for name in names if name != INTERNAL}
    fields = {field.alias or name for name, field in schema.model_fields.items()}
    if fields & slices.keys():
        return slices
    return {key: value for part in slices.values() if isinstance(part, dict) for key, value in part.items()}
