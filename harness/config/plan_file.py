"""A plan file becomes a scheduled plan, or every mistake in it with file, line, column, field and what to write."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from harness.config import json_tokens, plan_checks, reading, tree
from harness.config.tree import Fault, Place, Tree
from harness.errors import PlanInvalid
from harness.model import limits, needs
from harness.model.late import dataclass
from harness.model.needs import Problem
from harness.model.plan import Plan
from harness.model.schedule import Schedule, schedule

_EXPLAINED = 5 * limits.PLAN_PROBLEMS  # explaining one costs a search for similar names
# Written as what is refused: the same set as what is not allowed takes 5 ms to compile.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """`digest` is the SHA-256 of the file's bytes; `path` is as it was given."""

    plan: Plan
    schedule: Schedule
    digest: str
    path: str
    text: str


def load(path: str | Path) -> LoadedPlan:
    """The plan in a YAML or JSON file, `-` for standard input; raises PlanInvalid with all that is wrong."""
    source = _Source(str(path))
    try:
        text, raw = reading.text(path, limits.PLAN_BYTES)
    except reading.Unreadable as error:
        source.refuse([source.entry(None, "", str(error), "give the path of a plan file")])
    plan, order = source.scheduled(text)
    return LoadedPlan(plan, order, hashlib.sha256(raw).hexdigest(), str(path), text)


def parse(text: str, name: str) -> LoadedPlan:
    """The plan in a text that was never a file; problems call it `name`; raises PlanInvalid as `load` does."""
    plan, order = _Source(name).scheduled(text)
    return LoadedPlan(plan, order, hashlib.sha256(text.encode()).hexdigest(), name, text)


@dataclass(frozen=True, slots=True)
class _Source:
    """One file, as its problems name it."""

    path: str

    def scheduled(self, text: str) -> tuple[Plan, Schedule]:
        parsed = self._parsed(text)
        try:
            plan = Plan.model_validate(parsed.data)
        except ValidationError as error:
            from harness.config import complaints  # noqa: PLC0415 - a good plan does not pay for it

            found = error.errors(include_url=False)
            problems = complaints.explain(found[:_EXPLAINED], parsed.data)
            self._refuse_all(parsed, [*_version(parsed.data), *problems], unexplained=len(found[_EXPLAINED:]))
        problems = [*_version(parsed.data), *plan_checks.check(plan)]
        if any("owns" in problem.field for problem in problems):
            self._refuse_all(parsed, [*problems, *needs.resolve(plan.steps)[1]])
        order = schedule(plan)
        problems += order.problems
        if problems or parsed.faults:
            self._refuse_all(parsed, problems)
        return plan, order

    def _parsed(self, text: str) -> Tree:
        try:
            parsed = tree.build(_tokens(text, self.path))
        except Fault as fault:
            self.refuse([self.entry(fault.place, "", fault.message, fault.suggestion)])
        if parsed.data is None:
            self.refuse([self.entry(Place(1, 1), "", "is empty", "start with `steps:`; see `orchestrix init`")])
        if not isinstance(parsed.data, dict):
            self.refuse([self.entry(Place(1, 1), "", "must be fields with values at the top", "start with `steps:`")])
        return parsed

    def _refuse_all(self, parsed: Tree, problems: Sequence[Problem], *, unexplained: int = 0) -> NoReturn:
        faults = [self.entry(fault.place, "", fault.message, fault.suggestion) for fault in parsed.faults]
        placed = [
            self.entry(
                parsed.place(problem.field, key=problem.message == "unknown field"),
                field_name(problem.field),
                problem.message,
                problem.suggestion,
            )
            for problem in problems
        ]
        self.refuse(sorted([*faults, *placed], key=lambda entry: (entry["line"], entry["column"])), unexplained)

    def entry(self, place: Place | None, field: str, message: str, suggestion: str) -> dict[str, Any]:
        line, column = place or (None, None)
        return {
            "file": self.path,
            "line": line,
            "column": column,
            "field": field,
            "message": message,
            "suggestion": suggestion,
        }

    def refuse(self, errors: list[dict[str, Any]], unlisted: int = 0) -> NoReturn:
        """The first problem is the message; at most PLAN_PROBLEMS are listed and the rest is counted."""
        first = errors[0]
        place = ":".join(str(part) for part in (first["file"], first["line"], first["column"]) if part is not None)
        what = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
        others = len(errors) - 1 + unlisted
        more = f" (and {others} more)" if others else ""
        raise PlanInvalid(
            f"{place}: {what}{more}".replace("\n", " "), hint=first["suggestion"], errors=errors[: limits.PLAN_PROBLEMS]
        )


def field_name(path: tree.Path) -> str:
    """A path as people write it: `steps[2].needs[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _tokens(text: str, path: str) -> Any:
    odd = _UNPRINTABLE.search(text)
    if odd:
        before = text[: odd.start()]
        place = Place(before.count("\n") + 1, odd.start() - before.rfind("\n"))
        raise Fault(place, f"holds the character U+{ord(odd[0]):04X}, which is not printable", "remove it")
    if path.lower().endswith(".json") or (text.lstrip().startswith("{") and json_tokens.is_json(text)):
        return json_tokens.tokens(text)
    from harness.config import yaml_tokens  # noqa: PLC0415 - a plan in JSON does not pay for it

    return yaml_tokens.tokens(text)


def _version(data: dict[str, Any]) -> list[Problem]:
    """`true` and `1.0` equal 1 in Python, so the model lets them pass."""
    version = data.get("version", 1)
    if version == 1 and type(version) is not int:
        return [Problem(("version",), "must be the whole number 1", "write version: 1")]
    return []
