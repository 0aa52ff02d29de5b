"""The races of a step as its report tells them, from the log alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model import events as ev


def rows(facts: Sequence[ev.StepFact]) -> list[dict[str, Any]]:
    """Every candidate that was judged, in order, with where its work is."""
    taken = {(fact.attempt, fact.candidate) for fact in facts if isinstance(fact, ev.CandidateChosen)}
    kept = {fact.ref.rpartition("/")[2]: fact.ref for fact in facts if isinstance(fact, ev.WorkKept)}
    judged = [fact for fact in facts if isinstance(fact, ev.CandidateJudged)]
    return [
        {
            "attempt": fact.attempt,
            "candidate": fact.candidate,
            "agent": fact.agent,
            "ok": fact.ok,
            "reason": fact.reason,
            "message": fact.message,
            "lines": fact.lines,
            "usage": fact.usage,
            "taken": (fact.attempt, fact.candidate) in taken,
            "kept_ref": kept.get(f"attempt-{fact.attempt}.{fact.candidate}"),
        }
        for fact in sorted(judged, key=lambda fact: (fact.attempt, fact.candidate))
    ]


def of_the_taken(facts: Sequence[ev.StepFact]) -> list[ev.StepFact]:
    """The facts without checks on trees of candidates that were not taken: they say nothing of the step's result."""
    taken = {(fact.attempt, fact.candidate) for fact in facts if isinstance(fact, ev.CandidateChosen)}
    trees: dict[bool, set[str | None]] = {True: set(), False: set()}
    for fact in facts:
        if isinstance(fact, ev.CandidateJudged):
            trees[(fact.attempt, fact.candidate) in taken].add(fact.tree)
    others = trees[False] - trees[True]
    return [fact for fact in facts if not (isinstance(fact, ev.CheckFinished) and fact.tree in others)]
