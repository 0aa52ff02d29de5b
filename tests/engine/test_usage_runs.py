"""What agents told that they used stands in the report, in the summary, in `status` and in the machine surface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.counting import CountingAgent
from support.workbench import Workbench, shell

from harness.agents import registry


@pytest.fixture
def counted(bench: Workbench, monkeypatch) -> Workbench:
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
    monkeypatch.setitem(registry._BUILT_IN, "command", CountingAgent)
    first = shell('echo done > 0.txt; [ "$ORCHESTRIX_ATTEMPT" != 1 ]', title="second try", owns=["0.txt"], retries=1)
    second = shell("echo done > 1.txt", title="first try", owns=["1.txt"])
    assert bench.run(first, second).reasons == ["merged", "merged"]
    return bench


def test_usage_is_added_up_for_steps_and_for_the_run(counted: Workbench) -> None:
    """Failed attempts cost as well; model and session are those of the last one."""
    data = counted.call("status", "--json").data
    first = {"input_tokens": 200, "output_tokens": 20, "cost_usd": 0.2, "model": "m-1", "session_id": "s2"}
    assert data["steps"][0]["usage"] == first
    assert data["usage"] == {"input_tokens": 300, "output_tokens": 30, "cost_usd": 0.3}
    told = counted.call("status").out
    assert "m-1 $0.2000, 200 input tokens, 20 output tokens" in told
    assert "usage: $0.3000, 300 input tokens, 30 output tokens" in told
    report = counted.call("report", "--step", "0", "--json").data
    assert report["report"]["usage"] == first
    assert f"usage: {json.dumps(report['report']['usage'])}\n" in report["markdown"]
    assert "- usage: $0.3000, 300 input tokens, 30 output tokens" in counted.call("report").out
    assert "| $0.2000, 200 input tokens, 20 output tokens |" in counted.call("report").out


def test_a_replay_shows_the_usage_and_does_not_count_it(counted: Workbench, tmp_path: Path) -> None:
    """It was paid for once."""
    file = tmp_path / "run.zip"
    assert counted.call("record", "-o", str(file)).code == 0
    again = counted.call("run", str(counted.root / "plan.json"), "--replay", str(file), "--json")
    assert again.reasons == ["merged", "merged"]
    assert again.data["usage"] == {}
    assert again.steps[1]["usage"]["cost_usd"] == 0.1
    assert again.steps[1]["usage"]["replayed"] is True
    assert "(replayed)" in counted.call("status").out
