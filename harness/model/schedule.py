"""From a plan to an order of work: who needs whom, by the author's word or by overlapping ownership."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from harness.model import globs, needs, overlaps
from harness.model.globs import Ownership
from harness.model.late import dataclass
from harness.model.needs import Problem
from harness.model.overlaps import Bits
from harness.model.plan import Plan


@dataclass(frozen=True, slots=True)
class Reason:
    """Two patterns that may claim one path; None where there were too many to compare, which counts as overlap."""

    earlier: int
    later: int
    patterns: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class StepSchedule:
    """One step's place; sets of steps are bits, since a large plan has millions of pairs."""

    idx: int
    needs: tuple[int, ...]
    implied: Bits
    before: Bits
    clashes: Bits

    @property
    def implied_needs(self) -> tuple[int, ...]:
        """Every earlier step with overlapping ownership that is not needed already, directly or through needs."""
        return tuple(_indices(self.implied))


@dataclass(frozen=True)
class Schedule:
    """The whole order; `problems` is empty when the plan can run."""

    steps: tuple[StepSchedule, ...]
    boundaries: tuple[Ownership, ...]
    problems: tuple[Problem, ...]

    def closure(self, idx: int) -> tuple[int, ...]:
        """Everything that a step needs, written and implied, direct and indirect, in plan order."""
        return tuple(_indices(self.steps[idx].before))

    def nearest(self, idx: int) -> tuple[int, ...]:
        """The direct needs, written and implied, that no other need leads to."""
        step = self.steps[idx]
        return tuple(_indices(_reduced(step.implied | _bits(step.needs), self.steps)))

    def reason(self, earlier: int, later: int) -> Reason:
        """Why these two do not run together although no need is written."""
        return Reason(earlier, later, globs.overlap(self.boundaries[earlier], self.boundaries[later]))

    def reasons(self, idx: int) -> tuple[Reason, ...]:
        """One for each implied need, in plan order."""
        return tuple(self.reason(need, idx) for need in self.steps[idx].implied_needs)

    @cached_property
    def overlaps(self) -> tuple[tuple[int, int], ...]:
        """Pairs that may claim one path and run together all the same: only under `overlap: allow`."""
        return tuple((earlier, step.idx) for step in self.steps for earlier in _indices(step.clashes))

    @cached_property
    def waves(self) -> tuple[tuple[int, ...], ...]:
        """Steps that may run together once all earlier waves are done."""
        waves: dict[int, list[int]] = {}
        for idx, (length, _) in enumerate(self._chains):
            waves.setdefault(length, []).append(idx)
        return tuple(tuple(waves[length]) for length in sorted(waves))

    @cached_property
    def critical_path(self) -> tuple[int, ...]:
        """The longest chain of steps; among equals, the one that ends and goes back through the earliest steps."""
        at: int | None = max(range(len(self.steps)), key=lambda idx: self._chains[idx][0])
        path = []
        while at is not None:
            path.append(at)
            at = self._chains[at][1]
        return tuple(reversed(path))

    @cached_property
    def _chains(self) -> tuple[tuple[int, int | None], ...]:
        """For each step the length of the longest chain that ends with it, and the step before it there."""
        chains: list[tuple[int, int | None]] = []
        for step in self.steps:
            last = max(self.nearest(step.idx), key=lambda need: chains[need][0], default=None)
            chains.append((1, None) if last is None else (chains[last][0] + 1, last))
        return tuple(chains)


def schedule(plan: Plan) -> Schedule:
    """The order that a plan gives; every problem with needs, ids and, under `overlap: refuse`, ownership is listed.

    Patterns must be good ones (`globs.problem`).
    """
    written, problems = needs.resolve(plan.steps)
    boundaries = tuple(Ownership(step.owns) for step in plan.steps)
    steps: list[StepSchedule] = []
    by_word: list[Bits] = []
    for idx, meeting in enumerate(overlaps.earlier(boundaries)):
        direct = _bits(written[idx])
        by_word.append(_closed(direct, by_word))
        clashes = meeting & ~by_word[idx]
        implied = 0 if plan.overlap == "allow" else clashes
        before = _closed(direct | implied, [step.before for step in steps])
        steps.append(StepSchedule(idx, written[idx], implied, before, clashes if plan.overlap == "allow" else 0))
    result = Schedule(tuple(steps), boundaries, tuple(problems))
    if plan.overlap == "refuse":
        problems += [_refusal(result, need, step.idx) for step in steps for need in _unwritten(step, steps)]
    return Schedule(result.steps, boundaries, tuple(problems))


def _refusal(order: Schedule, earlier: int, later: int) -> Problem:
    patterns = order.reason(earlier, later).patterns
    which = f"{patterns[1]} meets {patterns[0]}" if patterns else "too many patterns to tell them apart"
    return Problem(
        ("steps", later, "owns"),
        f"step {later} may change what step {earlier} changes ({which}), and `overlap: refuse` wants that written",
        f"needs: {[*order.steps[later].needs, earlier]}",
    )


def _unwritten(step: StepSchedule, steps: Sequence[StepSchedule]) -> Iterator[int]:
    """The implied needs that would settle all of them, once written."""
    return _indices(_reduced(step.implied | _bits(step.needs), steps) & step.implied)


def _closed(direct: Bits, closures: Sequence[Bits]) -> Bits:
    """These steps and all that they need."""
    closed = direct
    open_: Bits = direct
    while open_:
        top = open_.bit_length() - 1
        closed |= closures[top]
        open_ &= ~(closures[top] | 1 << top)
    return closed


def _reduced(direct: Bits, steps: Sequence[StepSchedule]) -> Bits:
    """These steps without those that another one of them needs."""
    kept: Bits = 0
    while direct:
        top = direct.bit_length() - 1
        kept |= 1 << top
        direct &= ~(steps[top].before | 1 << top)
    return kept


def _bits(indices: Sequence[int]) -> Bits:
    bits: Bits = 0
    for idx in indices:
        bits |= 1 << idx
    return bits


def _indices(bits: Bits) -> Iterator[int]:
    """The members, in order."""
    for offset, byte in enumerate(bits.to_bytes((bits.bit_length() + 7) // 8, "little")):
        for bit in range(8) if byte else ():
            if byte >> bit & 1:
                yield offset * 8 + bit
