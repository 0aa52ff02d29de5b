"""Several runs with many worktrees at once on one repository: no lock error, no orphan branch, each result right."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.checker import check, fingerprint
from support.workbench import Workbench, shell


def _plan(bench: Workbench, run: int, steps: int) -> str:
    """Every step commits once with git itself and leaves more behind; all of them may run at the same time."""
    plan = bench.plan(
        *(
            shell(
                f"echo {run} > run{run}/{idx}.txt; git add -A; git commit -qm own; echo more >> run{run}/{idx}.txt",
                owns=[f"run{run}/{idx}.txt"],
            )
            for idx in range(steps)
        )
    )
    return str(plan.rename(bench.root / f"plan-{run}.json"))


def _soak(tmp_path: Path, runs: int, steps: int) -> None:
    bench = Workbench(tmp_path)
    bench.commit({f"run{run}/start.txt": "start\n" for run in range(runs)}, "Start")
    before = fingerprint(bench.files)
    plans = [_plan(bench, run, steps) for run in range(runs)]
    processes = [
        bench.process("run", plan, "--json", "-j", str(steps), "--run-id", f"soak-{run}")
        for run, plan in enumerate(plans)
    ]
    for run, process in enumerate(processes):
        out, err = process.communicate()
        assert (process.returncode, err) == (0, ""), out
        tree = bench.tree(f"refs/heads/orchestrix/soak-{run}/integration")
        made = {f"run{run}/{idx}.txt": f"{run}\nmore" for idx in range(steps)}
        assert tree == {f"run{other}/start.txt": "start" for other in range(runs)} | made
    branches = bench.git("for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
    assert branches == ["refs/heads/main", *(f"refs/heads/orchestrix/soak-{run}/integration" for run in range(runs))]
    assert bench.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert bench.git("fsck", "--full", "--strict", "--no-dangling", "--no-progress") == ""
    assert check(bench.files, before=before) == []


def test_two_runs_of_eight_steps_at_once(tmp_path: Path) -> None:
    """The quick version of the soak."""
    _soak(tmp_path, 2, 8)


@pytest.mark.sweep
def test_four_runs_of_thirty_two_steps_at_once(tmp_path: Path) -> None:
    """128 worktrees on one repository."""
    _soak(tmp_path, 4, 32)
