"""Needs as their author wrote them, ids or indices, resolved to indices of earlier steps."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.late import dataclass
from harness.model.plan import Step


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that makes the plan invalid, with the path of the field it is about."""

    field: tuple[str | int, ...]
    message: str
    suggestion: str = ""


def resolve(steps: Sequence[Step]) -> tuple[list[tuple[int, ...]], list[Problem]]:
    """For each step the indices that it needs, sorted, and everything that is wrong with ids and needs."""
    ids, problems = _ids(steps)
    resolved = []
    for idx, step in enumerate(steps):
        found: dict[int, int | str] = {}
        for place, need in enumerate(step.needs):
            field = ("steps", idx, "needs", place)
            target = _target(need, ids, len(steps))
            problem = _problem(need, target, idx, steps, ids)
            if problem is None and target in found:
                problem = f"step {target} is needed twice", f"remove {need!r}"
            if problem is not None:
                problems.append(Problem(field, *problem))
            elif target is not None:
                found[target] = need
        resolved.append(tuple(sorted(found)))
    return resolved, problems


def _ids(steps: Sequence[Step]) -> tuple[dict[str, int], list[Problem]]:
    ids: dict[str, int] = {}
    problems = []
    for idx, step in enumerate(steps):
        if step.id is None:
            continue
        if step.id in ids:
            problems.append(
                Problem(
                    ("steps", idx, "id"),
                    f"{step.id!r} is the id of step {ids[step.id]} already",
                    "give each step an id of its own, or none",
                )
            )
        else:
            ids[step.id] = idx
    return ids, problems


def _target(need: int | str, ids: dict[str, int], count: int) -> int | None:
    if isinstance(need, str):
        return ids.get(need)
    return need if need < count else None


def _problem(
    need: int | str, target: int | None, idx: int, steps: Sequence[Step], ids: dict[str, int]
) -> tuple[str, str] | None:
    if target is None:
        return f"there is no step {need!r}", _unknown(need, idx, ids)
    if target == idx:
        return "a step cannot need itself", "remove it"
    if target > idx:
        back = idx in steps[target].needs or steps[idx].id in steps[target].needs
        why = "and needs this one: a cycle" if back else "and needs point to earlier steps only"
        return f"step {target} comes later {why}", f"move step {target} before step {idx}, or remove the need"
    return None


def _unknown(need: int | str, idx: int, ids: dict[str, int]) -> str:
    if isinstance(need, int):
        return f"steps count from 0; this one may need 0 to {idx - 1}" if idx else "the first step can need nothing"
    if need.isdigit():
        return f"an index is written without quotes: {need}"
    import difflib  # noqa: PLC0415 - a good plan does not pay for it

    close = difflib.get_close_matches(need, ids, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known ids: {', '.join(sorted(ids)[:10]) or 'none'}"
