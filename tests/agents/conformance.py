"""What every agent promises; an implementation inherits this suite and says how to ask it for work."""

from __future__ import annotations

import asyncio

import pytest

from harness.model.contract import Contract
from harness.model.verdict import Reason
from harness.ports import Agent, Outcome
from tests.agents.conftest import Stage
from tests.sandbox.survivors import marked, wait_for_marked


class AgentConformance:
    """Override `agent` and the four contracts; `accounts` are files that the agent writes about its work."""

    accounts: frozenset[str] = frozenset()

    def agent(self) -> Agent:
        raise AssertionError("an implementation says which agent it is")

    def writes(self) -> Contract:
        """A contract whose work is a file `made` with the text `done`."""
        raise AssertionError

    def fails(self) -> Contract:
        """A contract whose work does not succeed."""
        raise AssertionError

    def forbidden(self) -> Contract:
        """A contract that does not allow what its work needs."""
        raise AssertionError

    def sleeps(self, word: str) -> Contract:
        """A contract whose work runs for minutes, with `word` in an argument list."""
        raise AssertionError

    def test_work_appears_in_the_workspace_only(self, stage: Stage) -> None:
        """An agent that says that it is done has done it where it was told to."""
        outcome = stage.play(self.agent(), self.writes())
        assert outcome.failure is None
        assert {path: text for path, text in stage.files().items() if path not in self.accounts} == {"made": "done"}
        assert {path.name for path in stage.root.iterdir()} <= {"workspace", "private", "log"}

    def test_a_failure_is_an_outcome_with_a_cause(self, stage: Stage) -> None:
        """No exception, no empty message."""
        outcome = stage.play(self.agent(), self.fails())
        assert isinstance(outcome, Outcome)
        assert outcome.failure is not None
        assert outcome.failure.reason is Reason.AGENT_FAILED
        assert outcome.failure.message

    def test_what_the_contract_does_not_allow_is_not_done(self, stage: Stage) -> None:
        """A refusal names its reason and changes nothing."""
        outcome = stage.play(self.agent(), self.forbidden())
        assert outcome.failure is not None
        assert outcome.failure.reason in {Reason.TOOL_DENIED, Reason.CONTRACT_REFUSED}
        assert outcome.failure.hint
        assert stage.files() == {}

    def test_nothing_to_do_is_refused(self, stage: Stage) -> None:
        """A contract without work for this agent is not a success."""
        contract = self.writes()
        empty = contract.model_copy(
            update={"work": contract.work.model_copy(update={"command": None, "actions": None})}
        )
        outcome = stage.play(self.agent(), empty)
        assert outcome.failure is not None
        assert outcome.failure.reason is Reason.CONTRACT_REFUSED

    def test_cancelling_leaves_no_process(self, stage: Stage) -> None:
        """The cancellation arrives, and nothing of the work goes on."""
        word = f"conformance-{id(self)}-{type(self).__name__}"

        async def scene() -> None:
            task = asyncio.ensure_future(stage.perform(self.agent(), self.sleeps(word)))
            await asyncio.to_thread(wait_for_marked, word, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert marked(word) == []

        asyncio.run(scene())
