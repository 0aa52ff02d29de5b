"""The job as the runner's log shows it: a folded group for each step, an error at the place it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.ci import workflow
from harness.ci.result import Case, Result, Verdict
from harness.config import json_tokens, tree, yaml_tokens
from harness.model import duration, limits
from harness.sandbox.redact import plain_text

_SHOWN_PROBLEMS = 20

Line = Callable[[int], int | None]


def step_lines(plan_text: str) -> Line:
    """Where in a valid plan's text each step begins."""
    read = json_tokens if json_tokens.is_json(plan_text) else yaml_tokens
    parsed = tree.build(read.tokens(plan_text))
    return lambda idx: parsed.place(("steps", idx)).line


def render(result: Result, plan_file: str, line_of: Line) -> Iterator[str]:
    """Lines for the runner: groups first, then errors, since a folded error is not seen."""
    for case in result.cases:
        yield from _group(case)
    for case in result.cases:
        if case.verdict in (Verdict.FAILED, Verdict.UNFINISHED):
            line = line_of(case.step.step_idx)
            yield _error(f"{case.name} ({case.reason})", case.message or case.reason, plan_file, line)
    if result.error is not None:
        problems = result.error.details.get("errors", [])
        yield from (_problem(problem, plan_file) for problem in problems[:_SHOWN_PROBLEMS])
        if not problems:
            hint = f" ({result.error.hint})" if result.error.hint else ""
            yield _error(f"orchestrix: {result.error.code}", result.error.message + hint, "", None)


def _group(case: Case) -> Iterator[str]:
    yield workflow.command("group", plain_text(f"{case.name}: {case.reason} ({duration.text(case.duration_ms)})"))
    for text in (case.message, case.step.kept_ref and f"work kept at {case.step.kept_ref}", case.output):
        if text:
            yield from (workflow.neutral(line) for line in plain_text(text).rstrip("\n").split("\n"))
    yield workflow.command("endgroup")


def _error(title: str, message: str, file: str, line: int | None) -> str:
    bounded = plain_text(message)[: limits.OUTPUT_EXCERPT_CHARS]
    return workflow.command(
        "error", bounded, {"file": file, "line": line if file else None, "title": plain_text(title)}
    )


def _problem(problem: dict[str, Any], plan_file: str) -> str:
    field = f"{problem['field']}: " if problem["field"] else ""
    suggestion = f" ({problem['suggestion']})" if problem["suggestion"] else ""
    return _error("plan_invalid", f"{field}{problem['message']}{suggestion}", plan_file, problem["line"])
