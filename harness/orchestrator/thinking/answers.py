"""The shapes of a model's answers: small, strict, and without a field that could widen anything."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Reasons = Annotated[list[str], Field(max_length=5)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class PlannedStep(_Answer):
    """One step; how it is checked, sandboxed and limited is not the model's to say."""

    title: str
    description: str
    owns: Annotated[list[str], Field(min_length=1)]
    needs: list[int] = []
    success_criteria: list[str] = []
    tools: list[str] | None = None
    agent: str | None = None
    complex: bool = False


class PlanAnswer(_Answer):
    """Steps in merge order."""

    steps: Annotated[list[PlannedStep], Field(min_length=1)]
    partial: bool = False


class AnalysisAnswer(_Answer):
    """Whether one agent does a step alone."""

    decision: Literal["execute", "spawn"]
    reasons: Reasons = []
    recommended_tools: list[str] = []


class ClassificationAnswer(_Answer):
    """Whether a goal needs another plan."""

    more_work: bool
    reasons: Reasons = []
    missing: str = ""


class SynthesisAnswer(_Answer):
    """The final answer, for a person."""

    answer: Annotated[str, Field(min_length=1)]
