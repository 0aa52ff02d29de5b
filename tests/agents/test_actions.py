"""The agent that does what the plan lists."""

from __future__ import annotations

from harness.agents.actions import ActionsAgent
from harness.model.contract import Contract
from harness.model.verdict import Reason
from tests.agents.conformance import AgentConformance
from tests.agents.conftest import contract_for

_WRITE = ("write_file", {"path": "made", "content": "done"})


class TestActions(AgentConformance):
    def agent(self) -> ActionsAgent:
        return ActionsAgent()

    def writes(self) -> Contract:
        return contract_for(actions=[_WRITE])

    def fails(self) -> Contract:
        return contract_for(actions=[("run", {"command": "exit 4"})])

    def forbidden(self) -> Contract:
        return contract_for(tools=["run"], actions=[_WRITE])

    def sleeps(self, word: str) -> Contract:
        return contract_for(actions=[("run", {"command": ["sh", "-c", "sleep 600; true", word]})])


def test_actions_run_in_order_and_stop_at_the_first_failure(stage) -> None:
    """What comes after a failure is not done."""
    actions = [
        _WRITE,
        ("run", {"command": "cat made; echo ' and more'; exit 9"}),
        ("write_file", {"path": "later", "content": ""}),
    ]
    outcome = stage.play(ActionsAgent(), contract_for(actions=actions))
    assert (outcome.failure.reason, outcome.exit_code) == (Reason.AGENT_FAILED, 9)
    assert outcome.failure.message == "action 1 (run): `cat made; echo ' and more'; exit 9`: exit code 9"
    assert outcome.failure.hint == "done and more"
    assert stage.files() == {"made": "done"}
    assert stage.told == [("write_file", True, True), ("run", True, False)]


def test_a_denied_action_is_a_denial_of_the_step(stage) -> None:
    """The action and the tool are named."""
    outcome = stage.play(
        ActionsAgent(), contract_for(tools=["write_file"], actions=[_WRITE, ("run", {"command": "true"})])
    )
    assert outcome.failure.reason is Reason.TOOL_DENIED
    assert outcome.failure.message == "action 1: step 3 may not use the tool run"
    assert stage.told == [("write_file", True, True), ("run", False, False)]


def test_a_command_that_hangs_is_a_timeout(stage) -> None:
    """The time limit of the attempt holds for its commands."""
    outcome = stage.play(ActionsAgent(), contract_for(actions=[("run", {"command": "sleep 600"})], timeout_ms=300))
    assert outcome.failure.reason is Reason.TIMEOUT
