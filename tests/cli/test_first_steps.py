"""What a new user meets first harms nothing: the sample plan, README's commands, and the demo's advice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.workbench import ROOT, Workbench


def test_the_sample_plan_runs_and_lands_without_a_trace(bench: Workbench) -> None:
    """Three steps are merged; landing them moves nothing, because they change nothing; only .orchestrix/ is new."""
    bench.commit({"a.txt": "a\n"})
    before = bench.git("rev-parse", "HEAD")
    assert bench.call("init").code == 0
    assert bench.call("validate", ".orchestrix/plan.yaml").code == 0
    done = bench.call("run", ".orchestrix/plan.yaml", "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 3), done.out
    landed = bench.call("land")
    assert landed.code == 0
    assert landed.out.startswith("nothing to land")
    assert bench.call("land", "--json").data["head"] is None
    assert bench.call("run", ".orchestrix/plan.yaml", "--land").out.splitlines()[-1].startswith("nothing to land")
    assert bench.git("rev-parse", "HEAD") == before
    assert bench.git("status", "--porcelain") == "?? .orchestrix/"
    assert bench.call("undo").code == 2


def test_the_demo_prints_commands_that_work_as_printed(tmp_path: Path) -> None:
    """Copied into a shell, in another directory, without anything on PATH for it."""
    env = {"HOME": str(tmp_path), "PATH": os.defpath, "XDG_STATE_HOME": str(tmp_path / "state"), "LANG": "C.UTF-8"}
    program = Path(sys.executable).with_name("orchestrix")
    demo = subprocess.run(
        [program, "demo", tmp_path / "de mo"], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert demo.returncode == 0, demo.stderr
    printed = [line.strip() for line in demo.stderr.splitlines() if line.startswith("  ") and " -C " in line]
    assert len(printed) > 4
    assert "next: orchestrix" not in demo.stdout
    for command in printed:
        done = subprocess.run(command, shell=True, cwd="/", env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout
