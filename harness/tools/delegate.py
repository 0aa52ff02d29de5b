"""The tool that asks for a step to be done in smaller steps."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from harness.errors import ContractViolation
from harness.model import limits
from harness.model.contract import Contract
from harness.model.plan import Text, Title, Word
from harness.tools.tool import Arguments, Reach


class Part(Arguments):
    """One smaller step; `needs` counts from 0 in the list."""

    title: Title
    description: Text = ""
    owns: Annotated[list[Word], Field(min_length=1)] | None = None
    needs: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    success_criteria: list[Title] = Field(default_factory=list)


class Delegate(Arguments):
    steps: Annotated[list[Part], Field(min_length=1, max_length=limits.DELEGATED_STEPS)]


def subplan(arguments: Delegate, contract: Contract) -> dict[str, Any]:
    """The data of a plan file for the smaller steps; whoever runs it narrows it to the contract."""
    return {
        "version": 1,
        "goal": f"{contract.step.title}\n\n{contract.step.description}".strip(),
        "steps": [step.model_dump(exclude_defaults=True) for step in arguments.steps],
    }


async def delegate(arguments: Delegate, reach: Reach) -> str:
    """Takes the request; raises ContractViolation where the contract does not let the step have children."""
    permissions = reach.contract.permissions
    if not permissions.can_spawn_children or permissions.max_delegation_depth < 1:
        raise ContractViolation(f"step {reach.step} may not delegate", hint="do the work within this step")
    return f"{len(arguments.steps)} steps are asked for"
