"""A schedule told to people: lines of text, or a Mermaid graph."""

from __future__ import annotations

import re

from harness.model.plan import Plan
from harness.model.schedule import Schedule

_TOLD = 5  # reasons told at one place; the rest is counted
_NOT_PLAIN = re.compile(r"[^\w .,:/()+=@!?*'-]")


def explain(plan: Plan, schedule: Schedule) -> list[str]:
    """Which steps run together, why others do not, and the critical path."""
    waves, path = schedule.waves, schedule.critical_path
    lines = [f"{_count(len(plan.steps), 'step')} in {_count(len(waves), 'wave')}"]
    for number, wave in enumerate(waves, 1):
        together = "run together" if len(wave) > 1 else "runs alone"
        lines.append(f"wave {number}, {together}:")
        for idx in wave:
            lines.append(f"  {idx} {plan.steps[idx].title}")
            lines += [f"      {line}" for line in _waits(schedule, idx)]
    lines.append(f"critical path: {' -> '.join(map(str, path))} ({_count(len(path), 'step')})")
    return lines + _allowed(schedule)


def mermaid(plan: Plan, schedule: Schedule) -> str:
    """A flowchart: solid arrows are written needs, dotted ones follow from ownership and no other need leads there."""
    lines = ["flowchart TD"]
    lines += [f'  s{idx}["{idx}: {_label(step.title)}"]' for idx, step in enumerate(plan.steps)]
    for step in schedule.steps:
        lines += [f"  s{need} --> s{step.idx}" for need in step.needs]
        lines += [f"  s{need} -. owns .-> s{step.idx}" for need in schedule.nearest(step.idx) if need not in step.needs]
    return "\n".join(lines) + "\n"


def _waits(schedule: Schedule, idx: int) -> list[str]:
    step = schedule.steps[idx]
    nearest = [need for need in schedule.nearest(idx) if need not in step.needs][:_TOLD]
    left = step.implied.bit_count() - len(nearest)
    lines = [f"waits for {need}: needs" for need in step.needs]
    lines += [f"waits for {need}: {_meeting(schedule, need, idx)}" for need in nearest]
    return [*lines, f"waits for {_count(left, 'earlier step')} more: ownership overlaps"] if left else lines


def _meeting(schedule: Schedule, earlier: int, later: int) -> str:
    patterns = schedule.reason(earlier, later).patterns
    if patterns is None:
        return f"{earlier} and {later} own too many patterns to tell them apart"
    return f"{patterns[0]} of {earlier} and {patterns[1]} of {later} may be the same path"


def _allowed(schedule: Schedule) -> list[str]:
    told = [f"overlap allowed: {_meeting(schedule, *pair)}" for pair in schedule.overlaps[:_TOLD]]
    left = len(schedule.overlaps) - len(told)
    return [*told, f"overlap allowed: {_count(left, 'pair')} more"] if left else told


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _label(title: str) -> str:
    """Text that stays text in Mermaid and in the page around it: entity codes for all that is not plain."""
    return _NOT_PLAIN.sub(lambda char: f"#{ord(char[0])};", title)
