"""What a node and a subgraph declare about themselves: frozen values, checked once when they are written."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class TriggerCondition(BaseModel):
    """When a supervisor may pick a node by rule; without `when` it always matches.

    Keys are `slice.field` (deeper paths too); an expected `True` or `False` is compared by truth, all else by equality.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    priority: int = 0
    when: dict[str, Any] | None = None
    when_not: dict[str, Any] | None = None
    llm_hint: str | None = None

    def describe(self) -> str:
        """The condition as one line for a trace or a prompt."""
        parts = [f"{key}={value!r}" for key, value in (self.when or {}).items()]
        parts += [f"not {key}={value!r}" for key, value in (self.when_not or {}).items()]
        return " and ".join(parts) or "always"


class NodeContract(BaseModel):
    """The slices, services and supervisor of one node."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str = Field(min_length=1)
    description: str
    reads: list[str]
    writes: list[str]
    requires_llm: bool = False
    services: list[str] = []
    supervisor: str = Field(min_length=1)
    trigger_conditions: list[TriggerCondition] = []
    is_terminal: bool = False
    icon: str | None = None

    def get_highest_priority_condition(self) -> TriggerCondition | None:
        """The condition that is looked at first, or None."""
        return max(self.trigger_conditions, key=lambda condition: condition.priority, default=None)

    def get_llm_hints(self) -> list[str]:
        """Every hint written for the model, in order."""
        return [condition.llm_hint for condition in self.trigger_conditions if condition.llm_hint]


class SubgraphContract(BaseModel):
    """The boundary of a subgraph: only `reads` go in, only `writes` come out, both checked against the schemas.

    A schema whose fields name slices is given the slices; any other schema is given the slices' fields, merged.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    subgraph_id: str = Field(min_length=1)
    description: str
    reads: list[str]
    writes: list[str]
    entrypoint: str = Field(min_length=1)
    input_schema: type[BaseModel] | None = None
    output_schema: type[BaseModel] | None = None


class SubgraphDefinition(BaseModel):
    """The members of a subgraph: `nodes=None` is every node of its supervisors, `nodes=[]` is none."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    subgraph_id: str = Field(min_length=1)
    supervisors: list[str] | None = None
    nodes: list[str] | None = None
