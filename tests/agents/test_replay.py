"""The agent that does what a recording holds refuses what the recording does not hold."""

from __future__ import annotations

from pathlib import Path

from harness.agents.replay import ReplayAgent
from harness.engine.clock import SystemClock
from harness.model.contract import Contract
from harness.model.recording import Attempt, Recording, Step, digest
from harness.model.verdict import Reason
from harness.store import recording_file
from harness.store.memory import MemoryStore
from harness.store.recording_file import RecordingFile
from tests.agents.conftest import Stage, contract_for

TREE = "1" * 40


class Elsewhere:
    """A repository that has no workspace of this name."""

    def find_workspace(self, run: str, name: str) -> None:
        return None

    def lay(self, *arguments: object) -> None:
        raise AssertionError("there is nothing to lay it into")


def _agent(folder: Path, contract: Contract, *attempts: Attempt) -> ReplayAgent:
    """The contract is that of step 3; the steps before it are somebody else's."""
    path = folder / "private" / "run.zip"
    steps = [Step(title="other", contract="0" * 64)] * 3
    recorded = Step(title=contract.step.title, contract=digest(contract), attempts=attempts)
    recording_file.write(path, Recording(run="r0", steps=(*steps, recorded)), {}, [("logs/one", b"said\n")])
    return ReplayAgent(RecordingFile.open(path), Elsewhere(), MemoryStore(SystemClock()))


def test_what_the_agent_said_is_said_again(stage: Stage) -> None:
    """Failure, exit code, usage, account and output, without a program and without a tree."""
    contract = contract_for(command=["x"])
    told = Attempt(
        start_tree=TREE,
        reason=Reason.RATE_LIMITED,
        message="later",
        exit_code=75,
        usage={"cost_usd": 1},
        account="Was busy.",
        log="logs/one",
    )
    outcome = stage.play(_agent(stage.root, contract, told), contract)
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.message) == (Reason.RATE_LIMITED, "later")
    assert outcome.failure.retry_after_ms == 0
    assert (outcome.exit_code, outcome.usage) == (75, {"cost_usd": 1, "replayed": True})
    assert stage.files() == {".orchestrix/step-3-result.md": "---\n---\nWas busy.\n"}
    assert (stage.root / "log").read_text() == "said\n"


def test_verdicts_are_not_said_again(stage: Stage) -> None:
    """A failed check is judged anew."""
    contract = contract_for(command=["x"])
    told = Attempt(start_tree=TREE, reason=Reason.CHECK_FAILED, message="red")
    assert stage.play(_agent(stage.root, contract, told), contract).failure is None


def test_what_is_not_recorded_is_refused(stage: Stage) -> None:
    """Another contract, no further attempt, a workspace that is not there."""
    contract = contract_for(command=["x"])
    cases = {
        "it was recorded under another contract": (contract_for(command=["y"]), []),
        "it holds 0 attempts, this is number 1": (contract, []),
        "there is no workspace workspace": (contract, [Attempt(start_tree=TREE, tree=TREE)]),
    }
    for words, (recorded, attempts) in cases.items():
        failure = stage.play(_agent(stage.root, recorded, *attempts), contract).failure
        assert failure is not None
        assert (failure.reason, failure.retryable) == (Reason.REPLAY_MISMATCH, False)
        assert words in failure.message
    assert stage.files() == {}
