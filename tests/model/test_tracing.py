"""A log becomes one trace: every span where it belongs, with the time that the log gives it."""

from __future__ import annotations

from itertools import pairwise

from harness.model import events as ev
from harness.model import tracing
from harness.model.spans import Span, nanoseconds
from tests.store.samples import (
    RUN,
    attempt,
    attempt_finished,
    closed,
    created,
    failed,
    failed_step,
    of,
    run_created,
    run_finished,
    run_started,
    started,
    tool_called,
)

START = nanoseconds("2026-01-02T03:04:01.000000Z")
SECOND = 1_000_000_000


def log(*facts: ev.Fact) -> list[ev.Envelope]:
    """These facts, one second apart."""
    return [
        ev.seal(fact, run_id=RUN, seq=seq, prev_hash="0" * 64, ts=f"2026-01-02T03:04:{seq:02}.000000Z")
        for seq, fact in enumerate(facts, 1)
    ]


def asked(**fields) -> dict[str, object]:
    return {
        "purpose": "plan",
        "version": 1,
        "question": "0" * 64,
        "model": "openai:gpt-x",
        "duration_ms": 1_500,
        "task": None,
    } | fields


def shape(spans: list[Span]) -> list[tuple[str, str | None, float, float, str | None]]:
    """Name, parent's name, seconds from the first event to start and end, error."""
    names = {span.span_id: span.name for span in spans}
    return [
        (
            span.name,
            names.get(span.parent_id or ""),
            (span.start - START) / SECOND,
            (span.end - START) / SECOND,
            span.error,
        )
        for span in spans
    ]


def test_a_run_is_a_tree_of_spans() -> None:
    """Run, step, attempt, tool and model call, nested and timed."""
    answered = ev.ModelAnswered(
        **asked(task="0", purpose="analysis"), answer={}, calls=1, input_tokens=7, output_tokens=3, cost_usd=None
    )
    spoke = ev.ModelSpoke(
        **of(0),
        attempt=1,
        turn=1,
        model="anthropic:c",
        calls=["run"],
        input_tokens=2,
        output_tokens=1,
        cost_usd=None,
        duration_ms=250,
    )
    denied = ev.ToolDenied(**of(0), tool="shell", arguments={}, message="not allowed")
    spans = tracing.of_log(
        log(
            run_created(),
            run_started(),
            ev.ModelGaveUp(**asked(), kind="timeout", message="too slow"),
            created(**of(0)),
            answered,
            started(**of(0)),
            attempt(**of(0)),
            spoke,
            tool_called(**of(0)),
            denied,
            attempt_finished(ok=False, reason="timeout", **of(0)),
            attempt(2, **of(0)),
            attempt_finished(**of(0)),
            failed(**of(0)),
            closed("failed", "agent_failed", **of(0)),
            run_finished("failed", 1),
        )
    )
    assert shape(spans) == [
        ("run r1", None, 0, 15, "failed"),
        ("chat gpt-x", "run r1", 0.5, 2, "timeout"),
        ("chat gpt-x", "step 0", 2.5, 4, None),
        ("step 0", "run r1", 3, 14, "agent_failed"),
        ("invoke_agent command", "step 0", 6, 10, "timeout"),
        ("chat c", "invoke_agent command", 6.75, 7, None),
        ("execute_tool run", "invoke_agent command", 8, 8, None),
        ("execute_tool shell", "invoke_agent command", 9, 9, "denied"),
        ("invoke_agent command", "step 0", 11, 12, None),
    ]
    assert spans[2].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "orchestrix.prompt.name": "analysis",
        "orchestrix.prompt.version": 1,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    assert spans[7].attributes["error.type"] == "denied"


def test_what_was_cut_short_ends_with_what_is_known() -> None:
    """A dead coordinator's attempt ends where the next one begins; open spans end with the last event."""
    spans = tracing.of_log(
        log(run_created(), created(**of(0)), started(**of(0)), attempt(**of(0)), run_started(2), attempt(2, **of(0)))
    )
    assert shape(spans) == [
        ("run r1", None, 0, 5, None),
        ("step 0", "run r1", 1, 5, None),
        ("invoke_agent command", "step 0", 3, 5, "interrupted"),
        ("invoke_agent command", "step 0", 5, 5, None),
    ]


def test_a_retried_step_is_a_span_of_its_own_and_the_last_outcome_counts() -> None:
    """A run that failed first and succeeded after a retry has no error."""
    spans = tracing.of_log(
        log(
            run_created(),
            *failed_step(**of(0)),
            run_finished("failed", 1),
            *failed_step(**of(0, again=1)),
            run_finished(),
        )
    )
    assert [span.error for span in spans if span.name.startswith("run")] == [None]
    assert "error.type" not in spans[0].attributes
    assert len({span.span_id for span in spans}) == len(spans) == 5


def test_a_nested_run_lies_under_its_step() -> None:
    """One trace, and the nested run's own span is a child of the step."""
    above = next(span for span in tracing.of_log(log(run_created(), created(**of(0)))) if span.name == "step 0")
    spans = tracing.of_log(log(run_created(), created(**of(1))), above)
    assert {span.trace_id for span in spans} == {above.trace_id}
    assert [span.parent_id for span in spans] == [above.span_id, spans[0].span_id]


def test_the_same_log_is_the_same_trace() -> None:
    """Ids and times come from the log, and every parent began before its children."""
    events = log(run_created(), *failed_step(**of(0)))
    first, second = tracing.of_log(events), tracing.of_log(events)
    assert first == second
    assert {span.trace_id for span in first} == {events[0].trace_id}
    assert all(one.start <= other.start for one, other in pairwise(first))
