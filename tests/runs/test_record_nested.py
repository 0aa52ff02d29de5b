"""Steps that became runs of their own, and races, are replayed by their result: no agent is started for any of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.checker import check
from support.workbench import Workbench, shell


def _gated(gate: Path, script: str, **fields: Any) -> dict[str, Any]:
    """A step whose agent is only there while the gate is."""
    return shell(f"test -e {gate} || exit 9; {script}", **fields)


def _nested(gate: Path) -> dict[str, Any]:
    children = [_gated(gate, f"echo {name} > {name}.txt", owns=[f"{name}.txt"]) for name in ("x", "y")]
    return {"title": "Parent", "owns": ["x.txt", "y.txt"], "steps": children}


def _half_failed(gate: Path) -> dict[str, Any]:
    children = [
        _gated(gate, "echo x > x.txt", owns=["x.txt"], title="good"),
        _gated(gate, "exit 3", owns=["y.txt"], title="bad"),
    ]
    return {"title": "Parent", "owns": ["x.txt", "y.txt"], "steps": children}


def _recovered(gate: Path) -> dict[str, Any]:
    return _gated(gate, 'cp "$ORCHESTRIX_PROMPT_FILE" x.txt; grep -q "last attempt failed" x.txt', owns=["x.txt"])


def _raced(gate: Path) -> dict[str, Any]:
    return _gated(gate, "echo $ORCHESTRIX_CANDIDATE > x.txt", owns=["x.txt"], candidates=2)


@pytest.mark.parametrize(
    ("step", "reason"),
    [(_nested, "merged"), (_half_failed, "nested_failed"), (_recovered, "merged"), (_raced, "merged")],
)
def test_the_result_is_replayed_without_agents(tmp_path: Path, monkeypatch, step, reason: str) -> None:
    """Same trees, same reasons; nothing is spawned and nobody is asked."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
    bench = Workbench(tmp_path)
    (bench.files / ".orchestrix").mkdir()
    (bench.files / ".orchestrix/config.toml").write_text('[errors]\nAgentFailed = "spawn_recovery"\n')
    bench.commit({"a.txt": "a\n"})
    gate = tmp_path / "agents-are-here"
    gate.touch()
    ran = bench.run(step(gate), shell(f"test -e {gate} && echo z > z.txt", owns=["z.txt"]))
    assert ran.reasons == [reason, "merged"], ran.out
    assert bench.call("record", "-o", str(tmp_path / "run.zip")).code == 0
    gate.unlink()
    again = bench.call("run", str(tmp_path / "plan.json"), "--json", "--replay", str(tmp_path / "run.zip"))
    assert again.reasons == ran.reasons, again.out
    assert bench.tree(again.data["head"]) == bench.tree(ran.data["head"])
    assert not [event for event in bench.events() if event["type"] == "subagent_spawned"]
    assert check(bench.files) == []
