"""A run's log as a trace: run, step, attempt, tool call and model call; a pure function of the envelopes.

Names and attributes are those of OpenTelemetry's conventions for generative AI, where these have a word for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.model import events as ev
from harness.model.spans import Scalar, Span, Trace

TASK = "orchestrix.task.id"
_RUN = "run"


def of_log(envelopes: Iterable[ev.Envelope], above: Span | None = None) -> list[Span]:
    """Every span of one run; `above` is the step that a nested run belongs to."""
    telling = _Telling(above)
    for envelope in envelopes:
        telling.hear(envelope)
    return telling.trace.spans


class _Telling:
    """Knows which step and which attempt a fact belongs to."""

    def __init__(self, above: Span | None) -> None:
        self.trace = Trace(above)
        self._steps: dict[str, str] = {}
        self._attempts: dict[str, str] = {}

    def hear(self, envelope: ev.Envelope) -> None:
        self.trace.at(envelope)
        fact = envelope.fact()
        handler = _HANDLERS.get(type(fact))
        if handler is not None:
            handler(self, fact, envelope)

    def run_created(self, fact: ev.RunCreated, envelope: ev.Envelope) -> None:
        about: dict[str, Scalar] = {"orchestrix.run.id": envelope.run_id, "orchestrix.run.base": fact.base}
        self.trace.begin(_RUN, f"run {envelope.run_id}", envelope, parent=None, attributes=about)

    def run_finished(self, fact: ev.RunFinished, _envelope: ev.Envelope) -> None:
        """The run stays open: a retry or a landing may follow."""
        outcome: dict[str, Scalar] = {"orchestrix.run.status": fact.status, "orchestrix.run.exit_code": fact.exit_code}
        failed = fact.status if fact.exit_code else None
        self.trace.note(_RUN, error=failed, message=fact.summary, attributes=outcome)

    def step_created(self, fact: ev.SubagentCreated, envelope: ev.Envelope) -> None:
        self._steps[fact.task] = fact.sub_agent_id
        about: dict[str, Scalar] = {TASK: fact.task, "orchestrix.step.title": fact.title}
        self.trace.begin(fact.sub_agent_id, f"step {fact.task}", envelope, parent=_RUN, attributes=about)

    def step_closed(self, fact: ev.SubagentClosed, _envelope: ev.Envelope) -> None:
        failed = fact.close_reason if fact.final_status == "failed" else None
        outcome: dict[str, Scalar] = {"orchestrix.step.close_reason": fact.close_reason}
        self.trace.end(fact.sub_agent_id, error=failed, message=fact.close_reason, attributes=outcome)

    def attempt_started(self, fact: ev.SubagentAttempt, envelope: ev.Envelope) -> None:
        """An attempt that never finished was one in which a coordinator died."""
        if fact.sub_agent_id in self._attempts:
            self.trace.end(self._attempts[fact.sub_agent_id], error="interrupted", message="its coordinator died")
        key = self._attempts[fact.sub_agent_id] = envelope.id
        about: dict[str, Scalar] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": fact.agent,
            "orchestrix.attempt": fact.attempt,
            "orchestrix.sandbox": fact.sandbox,
        }
        self.trace.begin(key, f"invoke_agent {fact.agent}", envelope, parent=fact.sub_agent_id, attributes=about)

    def attempt_finished(self, fact: ev.AttemptFinished, _envelope: ev.Envelope) -> None:
        used = {name: fact.usage.get(name) for name in ("input_tokens", "output_tokens")}
        tokens: dict[str, Scalar] = {f"gen_ai.usage.{name}": n for name, n in used.items() if isinstance(n, int)}
        failed = None if fact.ok else fact.reason or "failed"
        key = self._attempts.pop(fact.sub_agent_id, "")
        self.trace.end(key, error=failed, message=fact.message, attributes=tokens)

    def tool_called(self, fact: ev.ToolCalled, envelope: ev.Envelope) -> None:
        self._tool(fact, envelope, None if fact.ok else "tool_failed")

    def tool_denied(self, fact: ev.ToolDenied, envelope: ev.Envelope) -> None:
        self._tool(fact, envelope, "denied")

    def _tool(self, fact: ev.ToolCalled | ev.ToolDenied, envelope: ev.Envelope, failed: str | None) -> None:
        about: dict[str, Scalar] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": fact.tool}
        parent = self._attempts.get(fact.sub_agent_id, fact.sub_agent_id)
        name = f"execute_tool {fact.tool}"
        self.trace.add(envelope.id, name, envelope, parent=parent, milliseconds=0, attributes=about)
        self.trace.note(envelope.id, error=failed, message=fact.message, attributes={})

    def model_answered(self, fact: ev.ModelAnswered, envelope: ev.Envelope) -> None:
        """A question of the run's own."""
        self._chat(fact, envelope, self._steps.get(fact.task or "", _RUN), {**_prompt(fact), **_tokens(fact)})

    def model_failed(self, fact: ev.ModelGaveUp, envelope: ev.Envelope) -> None:
        self._chat(fact, envelope, self._steps.get(fact.task or "", _RUN), _prompt(fact))
        self.trace.note(envelope.id, error=fact.kind, message=fact.message, attributes={})

    def model_spoke(self, fact: ev.ModelSpoke, envelope: ev.Envelope) -> None:
        """A turn of the built-in agent."""
        self._chat(fact, envelope, self._attempts.get(fact.sub_agent_id, fact.sub_agent_id), _tokens(fact))

    def _chat(
        self,
        fact: ev.ModelAnswered | ev.ModelGaveUp | ev.ModelSpoke,
        envelope: ev.Envelope,
        parent: str,
        more: dict[str, Scalar],
    ) -> None:
        provider, _, name = fact.model.partition(":")
        about: dict[str, Scalar] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": name or provider,
        }
        self.trace.add(
            envelope.id,
            f"chat {name or provider}",
            envelope,
            parent=parent,
            milliseconds=fact.duration_ms,
            attributes=about | more,
        )


def _prompt(fact: ev.ModelAnswered | ev.ModelGaveUp) -> dict[str, Scalar]:
    return {"orchestrix.prompt.name": fact.purpose, "orchestrix.prompt.version": fact.version}


def _tokens(fact: ev.ModelAnswered | ev.ModelSpoke) -> dict[str, Scalar]:
    return {"gen_ai.usage.input_tokens": fact.input_tokens, "gen_ai.usage.output_tokens": fact.output_tokens}


_HANDLERS: dict[Any, Callable[[_Telling, Any, ev.Envelope], None]] = {
    ev.RunCreated: _Telling.run_created,
    ev.RunFinished: _Telling.run_finished,
    ev.SubagentCreated: _Telling.step_created,
    ev.SubagentClosed: _Telling.step_closed,
    ev.SubagentAttempt: _Telling.attempt_started,
    ev.AttemptFinished: _Telling.attempt_finished,
    ev.ToolCalled: _Telling.tool_called,
    ev.ToolDenied: _Telling.tool_denied,
    ev.ModelAnswered: _Telling.model_answered,
    ev.ModelGaveUp: _Telling.model_failed,
    ev.ModelSpoke: _Telling.model_spoke,
}
