"""The agent that is a language model: a loop over the tools that its contract allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field

from harness.agents import briefing
from harness.agents.conversation import Conversation
from harness.agents.utterances import Utterances
from harness.errors import ContractViolation, ModelFailed, ModelFault, ToolFailed
from harness.model import duration, limits
from harness.model import events as ev
from harness.model.late import dataclass
from harness.model.verdict import Failure, Reason
from harness.ports import Execute, Job, Message, Model, Outcome, ToolCall, ToolOffer, Tools, Turn, Usage
from harness.tools.delegate import Delegate, subplan

_REASONS = {
    ModelFault.RATE_LIMIT: Reason.RATE_LIMITED,
    ModelFault.AUTH: Reason.AUTH_FAILED,
    ModelFault.CONTEXT_FULL: Reason.CONTEXT_FULL,
    ModelFault.BAD_RESPONSE: Reason.BAD_RESPONSE,
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one attempt may use; `call_ms` is the time for one answer."""

    turns: int = limits.BUILTIN_TURNS
    tokens: int = limits.BUILTIN_TOKENS
    context: int = limits.BUILTIN_CONTEXT
    call_ms: int = limits.MODEL_CALL_MS


class BuiltinAgent:
    """Asks the model for its next turn, does what it calls, tells it what came of it, until it finishes."""

    def __init__(self, model: Callable[[], Model], bounds: Bounds) -> None:
        """`model` is called when the agent is used: making one loads libraries."""
        self._model = model
        self._bounds = bounds

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:  # noqa: ARG002 - the broker runs programs
        """The outcome, with what was spent in any case."""
        async with tools.offered() as offers:
            if not offers:
                return Outcome(
                    Failure(
                        Reason.CONTRACT_REFUSED, "the contract allows no tool", hint="give the step `allowed_tools`"
                    )
                )
            attempt = _Attempt(job, tools, self._model(), self._bounds, offers)
            return await attempt.run()


@dataclass(slots=True)
class _Attempt:
    job: Job
    tools: Tools
    model: Model
    bounds: Bounds
    offers: Sequence[ToolOffer]
    usage: Usage = field(default_factory=Usage)
    denials: int = 0
    number: int = 0  # of the turn
    began: float = field(default_factory=time.monotonic)

    async def run(self) -> Outcome:
        talk = Conversation(self.bounds.context, [Message("user", briefing.task(self.job.prompt, self.job.workspace))])
        said = Utterances(self.job.log)
        for number in range(1, self.bounds.turns + 1):
            self.number = number
            turn = await self._turn(talk, said)
            if isinstance(turn, Failure):
                return self._outcome(turn)
            ended = await self._obey(turn.message, talk)
            if ended is not None:
                return ended
        return self._outcome(_exceeded(f"the model did not finish within {self.bounds.turns} turns", "builtin.turns"))

    async def _turn(self, talk: Conversation, said: Utterances) -> Turn | Failure:
        """What the model says next, logged; or why it cannot be asked any more."""
        spent = self.usage.input_tokens + self.usage.output_tokens
        if spent > self.bounds.tokens:
            return _exceeded(f"the model used {spent} tokens; {self.bounds.tokens} are allowed", "builtin.tokens")
        self._compact(talk)
        began = time.monotonic()
        try:
            turn = await self._asked(talk, said)
        except ModelFailed as error:
            reason = _REASONS.get(error.kind, Reason.AGENT_FAILED)
            return Failure(reason, error.message, hint=error.hint, retry_after_ms=error.retry_after_ms)
        except TimeoutError:
            wall = duration.text(self.job.contract.execution.attempt_timeout_ms)
            return Failure(Reason.TIMEOUT, f"the step did not end within {wall}", hint="raise the step's `timeout`")
        said.end_turn()
        self._spoke(turn, began)
        return turn

    async def _asked(self, talk: Conversation, said: Utterances) -> Turn:
        """Once more with half of the conversation where the model says that it is too long for it."""
        try:
            return await self._converse(talk, said)
        except ModelFailed as error:
            if error.kind is not ModelFault.CONTEXT_FULL or not self._compact(talk, talk.size // 2):
                raise
        return await self._converse(talk, said)

    async def _converse(self, talk: Conversation, said: Utterances) -> Turn:
        wall_ms = self.job.contract.execution.attempt_timeout_ms
        left_ms = wall_ms - int((time.monotonic() - self.began) * 1000)
        if left_ms <= 0:
            raise TimeoutError
        limit_ms = min(left_ms, self.bounds.call_ms)
        try:
            return await self.model.converse(
                briefing.rules(), talk.messages, self.offers, timeout_ms=limit_ms, on_text=said.hear
            )
        except ModelFailed as error:
            self.usage += Usage(**error.usage)
            if error.kind is ModelFault.TIMEOUT and limit_ms == left_ms:
                raise TimeoutError from error
            raise

    def _compact(self, talk: Conversation, budget: int | None = None) -> bool:
        before = talk.size
        if not talk.compact(budget):
            return False
        self.job.note(ev.ContextCompacted, attempt=self.job.attempt, before=before, after=talk.size)
        return True

    async def _obey(self, message: Message, talk: Conversation) -> Outcome | None:
        """Does the calls in order; the outcome if the turn ended the work. Words without a call end it, too."""
        talk.add(message)
        if not message.calls:
            await self.tools.call("finish", {"summary": message.text})
            return self._outcome()
        whole = True
        for number, call in enumerate(message.calls):
            if number >= limits.TURN_CALLS or (not whole and call.name in {"finish", "delegate"}):
                text, done = "not done: look at what came of the calls before it first", False
            else:
                text, done = await self._call(call)
            talk.add(Message("tool", text[: limits.BUILTIN_RESULT_CHARS], call_id=call.id))
            whole = whole and done
            if self.denials > limits.BUILTIN_DENIALS:
                hint = "give the step the tool or the paths, or make its description clearer"
                return self._outcome(Failure(Reason.TOOL_DENIED, f"the model keeps asking: {text}", hint=hint))
            if done and call.name == "finish":
                return self._outcome()
            if done and call.name == "delegate":
                return self._outcome(subplan_of=call)
        return None

    async def _call(self, call: ToolCall) -> tuple[str, bool]:
        """What the tool says to the model, and whether it did what was asked."""
        try:
            answer = await self.tools.call(call.name, call.arguments)
            return (await self._synthesised(answer) if call.name == "synthesize" else answer), True
        except ModelFailed as error:
            return f"failed: {error.message}", False
        except ContractViolation as error:
            self.denials += 1
            return f"denied: {error.message} ({error.hint})", False
        except ToolFailed as error:
            return f"failed: {error.message}" + (f" ({error.hint})" if error.hint else ""), False

    async def _synthesised(self, material: str) -> str:
        """What the model makes of the texts that the broker read; it has no tool while it does."""
        began = time.monotonic()
        left_ms = self.job.contract.execution.attempt_timeout_ms - int((began - self.began) * 1000)
        limit_ms = max(1, min(left_ms, self.bounds.call_ms))
        try:
            turn = await self.model.converse(briefing.synthesis(), [Message("user", material)], (), timeout_ms=limit_ms)
        except ModelFailed as error:
            self.usage += Usage(**error.usage)
            raise
        self._spoke(turn, began)
        return turn.message.text

    def _spoke(self, turn: Turn, began: float) -> None:
        self.usage += turn.usage
        self.job.note(
            ev.ModelSpoke,
            attempt=self.job.attempt,
            turn=self.number,
            model=turn.model,
            calls=[call.name[:100] for call in turn.message.calls[: limits.TURN_CALLS]],
            input_tokens=turn.usage.input_tokens,
            output_tokens=turn.usage.output_tokens,
            cost_usd=turn.usage.cost_usd,
            duration_ms=int((time.monotonic() - began) * 1000),
        )

    def _outcome(self, failure: Failure | None = None, subplan_of: ToolCall | None = None) -> Outcome:
        asked = None if subplan_of is None else Delegate.model_validate(dict(subplan_of.arguments))
        return Outcome(
            failure,
            usage={
                "agent": "builtin",
                "model": self.model.name,
                "calls": self.usage.calls,
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "cost_usd": self.usage.cost_usd,
            },
            subplan=None if asked is None else subplan(asked, self.job.contract),
        )


def _exceeded(words: str, setting: str) -> Failure:
    return Failure(Reason.LIMIT_EXCEEDED, words, hint=f"make the step smaller, or raise `{setting}`")
