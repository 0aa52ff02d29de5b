"""A scripted model with its memory in view, and steps to ask it about."""

from __future__ import annotations

from typing import Any

from harness.model.contract import Contract, Execution, Ownership, Parent, Permissions, StepText, Work
from harness.model.events import Fact
from harness.models.script import Entry
from harness.models.scripted import ScriptedModel
from harness.orchestrator.thinking.asking import Asking
from harness.orchestrator.thinking.bounds import Bounds

TOOLS = ("read_file", "write_file")
BOUNDS = Bounds(agents=("builtin", "claude"), tools=TOOLS, checks=("pytest -q",))


class Mind:
    """What it is asked goes to `prompts`, what it records to `facts`."""

    def __init__(self, *entries: dict[str, Any]) -> None:
        self.script = ScriptedModel([Entry.model_validate(entry) for entry in entries])
        self.name = self.script.name
        self.prompts: list[str] = []
        self.facts: list[Fact] = []

    async def answer(self, system: str, prompt: str, shape: type[Any], *, timeout_ms: int, **told: Any) -> Any:
        self.prompts.append(prompt)
        return await self.script.answer(system, prompt, shape, timeout_ms=timeout_ms, **told)

    async def converse(self, *args: Any, **options: Any) -> Any:
        return await self.script.converse(*args, **options)

    def asking(self, **options: Any) -> Asking:
        return Asking(self, record=self.facts.append, **options)


def says(shape: str, **answer: Any) -> dict[str, Any]:
    """One entry of a script."""
    return {"shape": shape, "answer": answer, "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01}}


def fails(kind: str, times: int = 1) -> dict[str, Any]:
    return {"fail": {"kind": kind, "message": "as scripted"}, "times": times}


def planned(title: str = "Write it", **fields: Any) -> dict[str, Any]:
    """One step of a PlanAnswer."""
    return {"title": title, "description": "Do it.", "owns": [f"{title.rsplit(maxsplit=1)[-1].lower()}.txt"], **fields}


def contract(
    *,
    description: str = "Do it.",
    criteria: tuple[str, ...] = (),
    owns: tuple[str, ...] | None = ("src/**",),
    tools: tuple[str, ...] = TOOLS,
    depth: int = 1,
) -> Contract:
    return Contract(
        parent=Parent(run_id="r", step_idx=1, task_prompt="the goal", goal_summary="the goal"),
        step=StepText(title="the step", description=description, success_criteria=criteria),
        permissions=Permissions(allowed_tools=tools, can_spawn_children=depth > 0, max_delegation_depth=depth),
        execution=Execution(attempt_timeout_ms=60_000, max_retries=1),
        ownership=Ownership(paths=owns),
        work=Work(agent="builtin"),
    )
