"""The report of one step, built from the log alone: front matter for machines, sections for people."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from harness.model import duration, race_rows, usage
from harness.model import events as ev
from harness.model.late import dataclass
from harness.model.state import StepState
from harness.model.verdict import Reason
from harness.model.visible import visible

_MARKS = {"added": "A", "modified": "M", "deleted": "D"}
_SHOWN_PATHS = 500
_ESCAPES = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#"})
_TICKS = re.compile("`+")
# One of each for all: `dumps` looks at its options each time.
_json = json.JSONEncoder(ensure_ascii=True).encode
_encoded = json.JSONEncoder(ensure_ascii=False).encode

Told = defaultdict[type[ev.StepFact], list[Any]]
"""The facts of a step by their kind, each kind in the order of the log."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the report says, ready for Markdown and for its JSON form."""

    front: dict[str, Any]
    asked: dict[str, Any]
    outcome: str
    account: str
    changes: tuple[tuple[str, str], ...]
    changed_total: int
    criteria: tuple[dict[str, str], ...]
    checks: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = field(default=())
    left: tuple[str, ...] = field(default=())
    candidates: tuple[dict[str, Any], ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.front,
            "asked": self.asked,
            "outcome": self.outcome,
            "account": self.account,
            "changes": [{"kind": kind, "path": path} for kind, path in self.changes],
            "changed_total": self.changed_total,
            "criteria": list(self.criteria),
            "checks": list(self.checks),
            "notes": list(self.notes),
            "left": list(self.left),
            "candidates": list(self.candidates),
        }


def build(run_id: str, step: StepState, facts: Sequence[ev.StepFact], run_notes: Sequence[str] = ()) -> Report:
    """The report as the log stands now, for any outcome, also for a step that never started."""
    told = _sorted_out(facts)
    candidates: list[dict[str, Any]] = []
    if told[ev.CandidateJudged]:
        candidates = race_rows.rows(facts)
        told = _sorted_out(race_rows.of_the_taken(facts))
    last, snapshot = _last(told[ev.AttemptFinished]), _last(told[ev.SnapshotTaken])
    return Report(
        front=_front(run_id, step, told),
        asked={
            "description": step.contract["step"]["description"],
            "owns": step.contract["ownership"]["paths"],
            "agent": step.contract["work"]["agent"],
        },
        outcome=_outcome(step),
        account=last.account if last else "",
        changes=tuple(zip(snapshot.kinds, snapshot.changed_paths, strict=False)) if snapshot else (),
        changed_total=snapshot.changed_total if snapshot else 0,
        criteria=tuple(_criteria(step, told, last)),
        checks=tuple(_check(fact) for fact in told[ev.CheckFinished]),
        notes=(*_notes(told, snapshot), *run_notes),
        left=tuple(_left(run_id, step)),
        candidates=tuple(candidates),
    )


def _sorted_out(facts: Sequence[ev.StepFact]) -> Told:
    told: Told = defaultdict(list)
    for fact in facts:
        told[type(fact)].append(fact)
    return told


def _last(facts: Sequence[Any]) -> Any:
    return facts[-1] if facts else None


def _front(run_id: str, step: StepState, told: Told) -> dict[str, Any]:
    tried, prepared = _last(told[ev.SubagentAttempt]), told[ev.WorkspacePreparing]
    # Workspaces for checks alone may be of another kind.
    made = _last([fact for fact in prepared if fact.purpose.startswith("attempt")] or prepared)
    return {
        "run": run_id,
        "step": step.step_idx,
        "task": step.task_id,
        "id": step.step_id,
        "title": step.title,
        "sub_agent": step.sub_agent_id,
        "status": step.final_status or step.state.value,
        "reason": Reason.MERGED.value if step.merge_commit else step.close_reason,
        "base": step.start_point,
        "commit": step.commit,
        "merge_commit": step.merge_commit,
        "kept_ref": step.kept_ref,
        "started_at": step.started_at,
        "ended_at": step.ended_at,
        "attempts": step.attempts,
        "duration_ms": sum(fact.duration_ms for fact in told[ev.AttemptFinished]),
        "sandbox": tried.sandbox if tried else None,
        "workspace": made.workspace if made else None,
        "workspace_why": made.why if made else None,
        "usage": dict(step.usage),
    }


def _outcome(step: StepState) -> str:
    if step.merge_commit:
        return f"Merged as {step.merge_commit}."
    if step.close_reason:
        return f"Failed: {step.close_reason}: {step.message or ''}".rstrip(": ")
    return {"created": "Not started.", "running": "Running.", "waiting_for_merge": "Done; waits for the merge."}.get(
        step.state.value, step.state.value
    )


def _criteria(step: StepState, told: Told, last: ev.AttemptFinished | None) -> list[dict[str, str]]:
    shown: dict[str, list[ev.CheckFinished]] = {}
    for check in step.contract["checks"]:
        if check["criterion"]:
            shown[check["criterion"]] = [fact for fact in told[ev.CheckFinished] if fact.command == check["command"]]
    claims = {item["criterion"]: item for item in (last.criteria if last else [])}
    rows = []
    for text in step.contract["step"]["success_criteria"]:
        if shown.get(text):
            latest = shown[text][-1]
            status, evidence = ("met" if latest.ok else "not met"), f"check: {_words(latest.command)}"
        elif text in claims:
            status, evidence = "claimed by the agent, not verified", claims[text]["evidence"]
        else:
            status, evidence = "not verified", "no command shows it"
        rows.append({"criterion": text, "status": status, "evidence": evidence})
    return rows


def _words(command: str | list[str]) -> str:
    return command if isinstance(command, str) else " ".join(command)


def _check(fact: ev.CheckFinished) -> dict[str, Any]:
    return {
        "command": _words(fact.command),
        "where": fact.where,
        "ok": fact.ok,
        "exit_code": fact.exit_code,
        "duration_ms": fact.duration_ms,
        "failed_on_base": fact.failed_on_base,
        "output_tail": fact.output_tail,
    }


def _notes(told: Told, snapshot: ev.SnapshotTaken | None) -> list[str]:
    notes = [f"Denied: {fact.tool}: {fact.message}" for fact in told[ev.ToolDenied]]
    notes += [f"Ownership exception: {fact.path}: {fact.reason}" for fact in told[ev.OwnershipExcepted]]
    notes += [f"Kept: {fact.ref} ({fact.why})" for fact in told[ev.WorkKept]]
    notes += [f"Files kept in {fact.path}" for fact in told[ev.WorkspaceKept]]
    notes += [
        f"Attempt {fact.attempt} failed: {fact.reason}: {fact.message}"
        for fact in told[ev.AttemptFinished]
        if not fact.ok
    ]
    if snapshot and snapshot.ignored_total:
        names = ", ".join(snapshot.ignored) + (", ..." if snapshot.ignored_total > len(snapshot.ignored) else "")
        said = f"New files and folders left out, because ignore rules name them ({snapshot.ignored_total}): {names}"
        notes.append(said)
    return notes + (list(snapshot.warnings) if snapshot else [])


def _left(run_id: str, step: StepState) -> list[str]:
    if step.close_reason and not step.merge_commit:
        rows = [f"The step is not part of the result: {step.close_reason}."]
        if step.kept_ref:
            rows.append(
                f"Its work is at {step.kept_ref}; `orchestrix restore {run_id} {step.task_id}` makes a branch of it."
            )
        return rows
    return []


def markdown(report: Report) -> str:
    """The report as people read it; everything from outside is fenced or escaped, so that data stays data."""
    front = "\n".join([f"{key}: {_value(value)}" for key, value in report.front.items()])
    title = f"# Step {report.front['task']}: {_inline(str(report.front['title']))}"
    parts = [f"---\n{front}\n---\n\n{title}\n\n{_inline(report.outcome)}"]
    parts.append("## What was asked\n\n" + (_fence(report.asked["description"]) or "(no description)"))
    owns = report.asked["owns"]
    parts[-1] += "\n\nOwns: " + (", ".join(_code(item) for item in owns) if owns else "everything")
    if report.account:
        parts.append("## What was done, in the agent's words\n\n" + _fence(report.account))
    parts.append(f"## Files changed ({report.changed_total})\n\n" + (_changes(report) or "None."))
    if report.criteria:
        rows = "\n".join(
            f"- {_inline(row['criterion'])}: **{row['status']}** ({_inline(row['evidence'])})"
            for row in report.criteria
        )
        parts.append("## Success criteria\n\n" + rows)
    if report.checks:
        parts.append("## Checks\n\n" + "\n\n".join(_check_text(row) for row in report.checks))
    if report.candidates:
        parts.append("## Candidates\n\n" + "\n".join(_candidate(row) for row in report.candidates))
    if report.notes:
        parts.append("## Notes\n\n" + "\n".join(f"- {_inline(note)}" for note in report.notes))
    parts.append("## What is left\n\n" + ("\n".join(f"- {_inline(row)}" for row in report.left) or "Nothing."))
    return visible("\n\n".join(parts)) + "\n"


def as_json(report: Report) -> str:
    """The report as programs read it."""
    return _encoded(report.as_dict())


def _value(value: Any) -> str:
    """As JSON; most are texts, numbers or nothing, for which an encoder is a long way round."""
    if isinstance(value, str):
        return _quoted(value)
    if type(value) is int:
        return str(value)
    return "null" if value is None else _json(value)


def _candidate(row: dict[str, Any]) -> str:
    """A line that begins as its ref ends, with attempt and candidate; the one that was taken stands out."""
    size = f"{row['lines']} line{'' if row['lines'] == 1 else 's'}"
    verdict = f"ready, {size}" if row["ok"] else f"{row['reason']}, {size}: {row['message']}"
    words = _inline("; ".join(filter(None, [f"{row['agent']}: {verdict}", usage.sentence(row["usage"])])))
    kept = f"; kept at {_code(row['kept_ref'])}" if row["kept_ref"] else ""
    return f"- {row['attempt']}.{row['candidate']} " + (f"**{words}; taken**{kept}" if row["taken"] else words + kept)


def _changes(report: Report) -> str:
    rows = [f"- {_MARKS.get(kind, '?')} {_code(path)}" for kind, path in report.changes[:_SHOWN_PATHS]]
    if report.changed_total > len(rows):
        rows.append(f"- and {report.changed_total - len(rows)} more")
    return "\n".join(rows)


def _check_text(row: dict[str, Any]) -> str:
    outcome = "passed" if row["ok"] else f"failed (exit {row['exit_code']})"
    also = ", fails on the base commit too" if row["failed_on_base"] else ""
    head = f"- {_code(row['command'])} on the {row['where']} tree: **{outcome}**{also}, {duration.text(row['duration_ms'])}"
    return head + ("\n\n" + _fence(row["output_tail"]) if row["output_tail"].strip() else "")


def _fence(text: str) -> str:
    """A code fence longer than any in the text."""
    if not text.strip():
        return ""
    fence = "`" * max(3, _longest_ticks(text) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _code(text: str) -> str:
    line = " ".join(text.split("\n"))
    longest = _longest_ticks(line)
    tick = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{tick}{pad}{line}{pad}{tick}"


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text))) if "`" in text else 0


def _inline(text: str) -> str:
    return " ".join(text.split()).translate(_ESCAPES)
