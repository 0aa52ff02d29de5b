"""The job as a Markdown page for the step summary: a table that data cannot break out of."""

from __future__ import annotations

from harness.ci.result import Case, Result, Verdict
from harness.model import duration, limits

_MARKS = {Verdict.PASSED: "merged", Verdict.FAILED: "**failed**", Verdict.SKIPPED: "skipped"}
_SPECIAL = frozenset("\\`*_{}[]()#+!|~<>&@:$")
_CELL_CHARS = 300
# GitHub refuses a step's summary beyond 1 MiB.
_PAGE_BYTES = limits.MIB * 3 // 4


def render(result: Result) -> str:
    """Ends with a blank line, so that what others append stays apart; rows beyond the limit are counted."""
    parts = [f"## {_headline(result)}", ""]
    state = result.state
    if state is not None:
        merged = f"{result.count(Verdict.PASSED)} of {len(result.cases)} steps merged on {_text(result.branch)}"
        parts += [f"{merged}, from {state.base[:12]} to {state.head[:12]}; exit code {result.exit_code}.", ""]
        if state.landed:
            parts += [f"Landed on {_text(state.target or '')} at {state.landed[:12]}.", ""]
    if result.error is not None:
        parts += [f"**{_text(result.error.code)}**: {_text(result.error.message)} {_text(result.error.hint)}", ""]
    if result.cases:
        parts += ["| step | title | outcome | reason | time | commit or kept work |", "|---|---|---|---|---|---|"]
        parts += [*_rows(result.cases), ""]
    return "\n".join(parts) + "\n"


def _headline(result: Result) -> str:
    if result.state is None:
        return "Orchestrix: the run did not start"
    return f"Orchestrix: run {_text(result.state.run_id)} {result.status}"


def _rows(cases: tuple[Case, ...]) -> list[str]:
    rows: list[str] = []
    room = _PAGE_BYTES
    for number, case in enumerate(cases):
        row = _row(case)
        room -= len(row.encode("utf-8", "replace"))
        if room < 0:
            return [*rows, f"| | and {len(cases) - number} more | | | | |"]
        rows.append(row)
    return rows


def _row(case: Case) -> str:
    step = case.step
    why = case.reason if case.verdict is Verdict.PASSED else f"{case.reason}: {case.message}".removesuffix(": ")
    cells = (
        step.task_id,
        _text(step.title),
        _MARKS.get(case.verdict, "**unfinished**"),
        _text(why),
        duration.text(case.duration_ms),
        _text((step.merge_commit or "")[:12] or step.kept_ref or ""),
    )
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """One line in which every character that Markdown or HTML could obey is a reference."""
    line = " ".join(text.split())
    cut = line if len(line) <= _CELL_CHARS else line[:_CELL_CHARS] + "…"
    return "".join(f"&#{ord(char)};" if char in _SPECIAL or not char.isprintable() else char for char in cut)
