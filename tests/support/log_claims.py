"""Claims about the log alone: chain, lifecycle, sequence, intents, order, gate, outcome, and rows that are its fold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.evidence import Log, Row

ENVELOPE = ("id", "run_id", "seq", "type", "ts", "task_id", "trace_id", "summary", "payload", "prev_hash")

# Section 6 of the sub-agent specification, with the state that each event leads to.
SEQUENCE = {
    ("", "agent.subagent_created"): "created",
    ("created", "agent.subagent_started"): "running",
    ("running", "agent.subagent_attempt"): "running",
    ("running", "agent.subagent_waiting_for_merge"): "waiting_for_merge",
    ("created", "agent.subagent_failed"): "failed",
    ("running", "agent.subagent_failed"): "failed",
    ("waiting_for_merge", "agent.worktree_merged"): "completed",
    ("waiting_for_merge", "agent.integration_failed"): "failed",
    ("completed", "agent.subagent_closed"): "closed",
    ("failed", "agent.subagent_closed"): "closed",
}

# Which column each event sets, and from which field of its payload; an absent value changes nothing.
SUB_AGENT_COLUMNS = {
    "agent.subagent_created": {
        "step_idx": "step_idx",
        "task_id": "task",
        "step_id": "step_id",
        "title": "title",
        "context_json": "contract",
    },
    "agent.subagent_started": {"start_point": "start_point"},
    "agent.subagent_attempt": {"attempts": "attempt"},
    "snapshot.taken": {"commit_id": "commit", "changed_paths_json": "changed_paths"},
    "agent.subagent_waiting_for_merge": {
        "commit_id": "commit",
        "changed_paths_json": "changed_paths",
        "report_path": "report",
    },
    "agent.subagent_failed": {"close_reason": "reason", "commit_id": "commit", "kept_ref": "kept_ref"},
    "agent.integration_failed": {"close_reason": "reason", "conflicts_json": "conflicts", "kept_ref": "kept_ref"},
    "agent.worktree_merged": {"merge_commit": "merge_commit"},
    "agent.subagent_closed": {"final_status": "final_status", "close_reason": "close_reason"},
    "work.kept": {"kept_ref": "ref"},
}

RUN_COLUMNS = {
    "run.created": {
        "goal": "goal",
        "plan_digest": "plan_digest",
        "base": "base",
        "head": "base",
        "target": "target",
        "integration_ref": "integration_ref",
    },
    "run.plan_change_accepted": {"plan_digest": "new_digest"},
    "agent.worktree_merged": {"head": "merge_commit"},
    "run.finished": {"status": "status", "exit_code": "exit_code", "head": "head"},
    "run.landed": {"landed": "new", "target": "target"},
}

EXIT_CODES = {
    "merged": 0,
    "agent_missing": 3,
    "merge_conflict": 4,
    "ownership_violation": 5,
    "check_failed": 5,
    "criterion_failed": 5,
    "tool_denied": 5,
    "contract_refused": 5,
    "replay_mismatch": 5,
    "parent_tampered": 5,
    "parent_changed": 5,
    "max_depth_exceeded": 5,
    "max_steps_exceeded": 5,
    "cycle_detected": 5,
    "allowlist_violation": 5,
    "timeout": 124,
    "inactivity_timeout": 124,
    "cancelled": 130,
}


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def order(task: str) -> tuple[int, ...]:
    return tuple(int(part) for part in task.split("."))


def chain(log: Log) -> Iterator[str]:
    """Gap-free and hash-chained: an edited, dropped, doubled or moved line shows."""
    previous = "0" * 64
    for expected, event in enumerate(log.events, 1):
        body = canonical({name: event[name] for name in ENVELOPE})
        if event["seq"] != expected:
            yield f"I3: seq {event['seq']} stands where {expected} should"
        if event["prev_hash"] != previous:
            yield f"I3: seq {event['seq']} does not follow the line before it"
        if hashlib.sha256(body.encode()).hexdigest() != event["hash"]:
            yield f"I3: seq {event['seq']} ({event['type']}) was changed after it was written"
        previous = event["hash"]


def sequence(log: Log) -> Iterator[str]:
    """Each sub-agent goes through the specified events, is closed once, and does nothing afterwards."""
    states: dict[str, str] = {}
    for event in log.events:
        name = event["payload"].get("sub_agent_id")
        if name is None:
            continue
        old = states.get(name, "")
        if old == "closed":
            yield f"I3: {name} is closed, but seq {event['seq']} is {event['type']}"
        if not event["type"].startswith("agent."):
            continue
        if (old, event["type"]) not in SEQUENCE:
            yield f"I3: {name} is {old or 'unknown'}: {event['type']} (seq {event['seq']}) cannot come now"
        states[name] = SEQUENCE.get((old, event["type"]), old)
        if event["type"] == "agent.subagent_closed":
            yield from _closing(event, old)
    for name, state in states.items():
        if log.ended and state != "closed":
            yield f"I3: the run has ended, but {name} is {state}, not closed"


def _closing(event: Row, state: str) -> Iterator[str]:
    payload = event["payload"]
    missing = [
        name for name in ("sub_agent_id", "step_idx", "final_status", "close_reason") if payload.get(name) in (None, "")
    ]
    if missing:
        yield f"I3: seq {event['seq']}: agent.subagent_closed lacks {', '.join(missing)}"
    if payload.get("final_status") != state:
        yield f"I3: seq {event['seq']} closes {payload.get('sub_agent_id')} as {payload.get('final_status')}, but it is {state}"


def fold(log: Log) -> tuple[Row, dict[str, Row]]:
    """The rows that these events make: the run's, and each sub-agent's."""
    run: Row = {"run_id": log.run_id}
    agents: dict[str, Row] = {}
    standing: dict[str, str] = {}  # landings that were not undone, oldest first
    for event in log.events:
        kind, payload = event["type"], event["payload"]
        _set(run, RUN_COLUMNS.get(kind, {}), payload)
        run |= {"last_seq": event["seq"], "last_hash": event["hash"]}
        if kind in ("run.created", "run.started"):
            run |= {"status": "running", "exit_code": None, "finished_at": None}
        if kind == "run.landed":
            standing = {key: at for key, at in standing.items() if key != payload["target"]}
            standing[payload["target"]] = payload["new"]
        if kind == "run.landing_undone":
            standing.pop(payload["target"], None)
            run["landed"] = next(reversed(standing.values()), None)
        if kind == "run.cancelled":
            run |= {"status": "cancelled", "exit_code": None}
        if kind == "run.waiting":
            run |= {"status": "waiting", "exit_code": 7}
        if kind in ("run.cancelled", "run.finished"):
            run["finished_at"] = event["ts"]
        if kind == "run.created":
            run["created_at"] = event["ts"]
        if "sub_agent_id" in payload:
            row = agents.setdefault(payload["sub_agent_id"], {"state": ""})
            row["state"] = SEQUENCE.get((row["state"], kind), row["state"])
            _set(row, SUB_AGENT_COLUMNS.get(kind, {}), payload)
    return run, agents


def _set(row: Row, columns: dict[str, str], payload: Row) -> None:
    for column, field in columns.items():
        value = payload.get(field)
        if value is not None:
            row[column] = canonical(value) if column.endswith("_json") else value


def rows(log: Log) -> Iterator[str]:
    """The projection is the fold of the log, contracts included."""
    run, agents = fold(log)
    yield from _differences(f"runs {log.run_id}", run, log.run)
    for name in sorted(agents.keys() | log.sub_agents.keys()):
        yield from _differences(f"sub_agents {name}", agents.get(name, {}), log.sub_agents.get(name, {}))


def _differences(where: str, folded: Row, stored: Row) -> Iterator[str]:
    if not folded or not stored:
        yield f"I3: {where}: {'no event made this row' if stored else 'the row is missing'}"
        return
    for column, value in folded.items():
        if stored.get(column) != value:
            yield f"I3: {where}: {column} is {stored.get(column)!r}, but the log says {value!r}"


def contracts(log: Log) -> Iterator[str]:
    """Every step of the plan has its contract in the log before anything starts."""
    before = []
    for event in log.events:
        if event["type"] == "run.started":
            break
        if event["type"] == "agent.subagent_created":
            before.append(event["payload"])
    planned = len(log.created.get("plan", {}).get("steps", []))
    if [step["step_idx"] for step in before] != list(range(planned)):
        yield f"I3: contracts before the start are of steps {[step['step_idx'] for step in before]}, the plan has {planned}"
    yield from (f"I3: {step['sub_agent_id']} has no contract" for step in before if not step.get("contract"))


def intents(log: Log) -> Iterator[str]:
    """An effect is announced before it is reported: workspaces before attempts, integration before the merge."""
    announced: set[tuple[str, ...]] = set()
    for event in log.events:
        payload = event["payload"]
        name = payload.get("sub_agent_id", "")
        if event["type"] == "workspace.preparing":
            announced.add((name, payload["purpose"]))
        elif event["type"] == "integration.started":
            announced.add(_integration(payload))
        elif event["type"] == "agent.subagent_attempt":
            if (name, f"attempt{payload['attempt']}") not in announced:
                yield f"I3: attempt {payload['attempt']} of {name} has no workspace.preparing before it"
        elif event["type"] == "agent.worktree_merged" and _integration(payload) not in announced:
            yield f"I3: the merge of {name} has no integration.started before it"


def _integration(payload: Row) -> tuple[str, ...]:
    return tuple(payload[name] for name in ("sub_agent_id", "previous", "merge_commit", "tree"))


def merge_order(log: Log) -> Iterator[str]:
    """A step is integrated once, and only when every step before it in the plan is closed."""
    is_open: dict[str, bool] = {}
    merged: set[str] = set()
    for event in log.events:
        task = event["task_id"]
        if event["type"] == "agent.subagent_created":
            is_open[task] = True
        elif event["type"] == "agent.subagent_closed":
            is_open[task] = False
        elif event["type"] == "agent.worktree_merged":
            waiting = [other for other, still in is_open.items() if still and order(other) < order(task)]
            if waiting:
                yield f"I5: step {task} was merged while step {', '.join(sorted(waiting, key=order))} was not closed"
            if task in merged:
                yield f"I4: step {task} was integrated twice"
            merged.add(task)


def gate(log: Log) -> Iterator[str]:
    """What was merged passed its checks on exactly that tree."""
    passed: set[tuple[str, str, str]] = set()
    contract: dict[str, Row] = {}
    for event in log.events:
        payload = event["payload"]
        name = payload.get("sub_agent_id", "")
        if event["type"] == "agent.subagent_created":
            contract[name] = payload["contract"]
        elif event["type"] == "check.finished":
            excused = payload.get("failed_on_base") and _may_fail(contract[name], payload["command"])
            if payload["ok"] or excused:
                passed.add((name, canonical(payload["command"]), payload["tree"]))
        elif event["type"] == "agent.worktree_merged":
            for check in contract.get(name, {}).get("checks", []):
                if (name, canonical(check["command"]), payload["tree"]) not in passed:
                    yield f"I6: {name} was merged, but `{check['command']}` never passed on tree {payload['tree'][:12]}"


def speculation(log: Log) -> Iterator[str]:
    """What was gated ahead counts on its own commit and on the head that it assumed; until then no check of it is logged."""
    guesses: dict[str, Row] = {}
    head = log.created.get("base")
    for event in log.events:
        kind, payload = event["type"], event["payload"]
        name = payload.get("sub_agent_id", "")
        if kind == "run.started":
            guesses.clear()
        elif kind == "gate.speculated":
            guesses[name] = payload
        elif kind in ("gate.speculation_held", "gate.speculation_discarded"):
            guess = guesses.pop(name, {})
            if guess.get("commit") != payload["commit"]:
                yield f"I6: seq {event['seq']} ends a gate ahead of {name} that was never begun"
            elif kind == "gate.speculation_held" and guess["head"] != head:
                yield f"I6: {name} was gated ahead on {guess['head'][:12]}, but the head is {head}"
        elif kind == "check.finished" and payload["where"] == "merged" and name in guesses:
            yield f"I6: seq {event['seq']} is a check of {name} on a tree that is only assumed"
        elif kind == "agent.worktree_merged":
            head = payload["merge_commit"]


def _may_fail(contract: Row, command: Any) -> bool:
    return any(check["may_fail_on_base"] for check in contract["checks"] if check["command"] == command)


def outcome(log: Log) -> Iterator[str]:
    """The run's end follows from its steps: all completed, or the first failed one in plan order decides.

    A run that was ended before its steps were done is `cancelled`, with the exit code of the reason that was logged first.
    """
    steps: dict[str, Row] = {}
    ending: str | None = None
    finished = False
    head = log.created.get("base")
    for event in log.events:
        payload = event["payload"]
        if event["type"] == "agent.subagent_closed":
            steps[event["task_id"]] = payload
        elif event["type"] == "agent.subagent_created":
            ending = None if event["task_id"] in steps else ending
            steps.pop(event["task_id"], None)
        elif event["type"] == "run.cancelled" and payload.get("end"):
            ending, finished = payload["reason"], False
        elif event["type"] == "agent.worktree_merged":
            head = payload["merge_commit"]
        elif event["type"] == "run.started" and finished:
            ending, finished = None, False
        elif event["type"] == "run.finished":
            finished = True
            failed = [steps[task] for task in sorted(steps, key=order) if steps[task]["final_status"] == "failed"]
            cause = ending or (failed[0]["close_reason"] if failed else "merged")
            expected = {
                "status": "cancelled" if ending else "failed" if failed else "succeeded",
                "exit_code": EXIT_CODES.get(cause, 1),
                "head": head,
                "merged": len(steps) - len(failed),
                "failed": len(failed),
            }
            yield from (
                f"I9: the run finished with {name} {payload[name]!r}, but its steps say {value!r}"
                for name, value in expected.items()
                if payload[name] != value
            )


CLAIMS = (chain, sequence, rows, contracts, intents, merge_order, gate, speculation, outcome)
