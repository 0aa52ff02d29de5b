"""Which facts wait for the disk: those that announce an effect, and with them everything that was logged before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.model.events import envelope


def syncs(folder: Path, facts: int) -> int:
    """How often a coordinator that appends so many tool calls waits for the disk."""
    folder.mkdir()
    told = folder / "strace"
    traced = ["strace", "-f", "-qq", "-e", "trace=fdatasync,fsync", "-o", str(told)]
    work = [sys.executable, "-m", "tests.store.appender", str(folder / "state.db"), "r1", str(facts)]
    subprocess.run([*traced, *work], cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL, check=True)
    return len(told.read_text().splitlines())


def test_outcomes_share_the_write_of_the_next_announcement(strace: None, tmp_path: Path) -> None:
    """Forty tool calls cost no more waiting than none: the end of the lease, which is durable, takes them along."""
    assert syncs(tmp_path / "none", 0) == syncs(tmp_path / "many", 40)


def test_only_mere_outcomes_may_wait() -> None:
    """The whole list: whatever is new announces an effect until somebody decides otherwise."""
    assert {name for name, kind in envelope.TYPES.items() if not kind.announces} == {
        "agent.subagent_attempt",
        "agent.subagent_closed",
        "agent.subagent_started",
        "agent.subagent_waiting_for_merge",
        "agent.worktree_merged",
        "check.finished",
        "gate.speculated",
        "gate.speculation_discarded",
        "gate.speculation_held",
        "routing_decision",
        "snapshot.taken",
        "task_started",
        "task_succeeded",
        "tool.called",
        "tool.denied",
        "workspace.removed",
    }
