"""Commit messages of the harness: a subject for people, trailers for machines."""

from __future__ import annotations

from harness.model.ids import RunId
from harness.model.state import StepState


def _trailers(run: RunId, step: StepState) -> str:
    work = step.contract["work"]
    agent = ", ".join(dict.fromkeys(work.get("candidates", ()))) or work["agent"]
    return f"Orchestrix-Run: {run}\nOrchestrix-Step: {step.task_id}\nOrchestrix-Agent: {agent}\n"


def snapshot(run: RunId, step: StepState) -> str:
    return f"{step.title}\n\n{_trailers(run, step)}"


def merge(run: RunId, step: StepState) -> str:
    return f"Merge step {step.task_id}: {step.title}\n\n{_trailers(run, step)}"
