"""Start-up and speed: what the quick commands never load, and, under the marker `bench`, the promised ratios."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import contenders, samples, startup
from bench.ground import Ground
from bench.places import Place, Task
from bench.work import Runs

HEAVY = {"asyncio", "email", "git", "httpx", "importlib.metadata", "langgraph", "pygit2", "typer", "watchfiles", "yaml"}
_LOADED = """
import contextlib, json, os, sys
os._exit = sys.exit
from harness.__main__ import main
with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
    main()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A small repository in which one run was made."""
    task = Task(samples.generated(tmp_path_factory.mktemp("sample"), 20), 1)
    place = Place.made(task, tmp_path_factory.mktemp("place"))
    command = [sys.executable, "-m", "harness", "run", place.plan, "--sandbox", "none"]
    subprocess.run(command, cwd=place.repo, env=place.env, capture_output=True, check=True)
    return place


def loaded(place: Place, *arguments: str | Path) -> set[str]:
    """The modules that a command leaves in memory."""
    command = [sys.executable, "-c", _LOADED, *arguments]
    done = subprocess.run(command, cwd=place.repo, env=place.env, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_version_costs_nothing(place: Place) -> None:
    """`--version` answers before any library is loaded."""
    modules = loaded(place, "--version")
    assert modules & {*HEAVY, "dataclasses", "pydantic", "sqlite3"} == set()
    assert {name for name in modules if name.startswith("harness")} == {
        *("harness", "harness.__main__", "harness.cli", "harness.cli.streams")
    }


def test_the_log_is_read_without_the_engine(place: Place) -> None:
    """`status` loads the log and its fold: no git, no event loop, no plan or contract models, and nothing that they need."""
    modules = loaded(place, "status")
    assert modules & {*HEAVY, "pydantic", "tomllib"} == set()
    assert modules & {"harness.model.plan", "harness.model.contract", "harness.engine.context"} == set()
    unused = ("harness.vcs", "harness.agents", "harness.sandbox", "harness.orchestrator")
    assert not any(name.startswith(unused) for name in modules)


def test_a_plan_is_validated_without_a_repository(place: Place) -> None:
    """`validate` loads the plan models: no git, no event loop, no store."""
    modules = loaded(place, "validate", place.plan)
    assert modules & {*HEAVY, "sqlite3", "tomllib"} == set()
    assert not any(name.startswith(("harness.vcs", "harness.engine", "harness.store")) for name in modules)


@pytest.mark.bench
def test_the_quick_commands_start_fast(tmp_path: Path) -> None:
    """`--version` within 8 times a bare interpreter, `status` and `validate` within 20 times."""
    with Ground(str(tmp_path)) as ground:
        place = Place.made(Task(samples.generated(ground.folder(), 500), 8), ground.folder())
        assert startup.measure(place, rounds=10).broken == []


@pytest.mark.bench
def test_a_run_costs_little_more_than_git(tmp_path: Path) -> None:
    """Eight trivial steps on 500 files within 1.5 times the plain script that does the same."""
    with Ground(str(tmp_path)) as ground:
        sample = samples.generated(ground.folder(), 500)
        names = (contenders.PLAIN, contenders.OVERLAY, contenders.CHECKOUT)
        taking_part = contenders.chosen(names, contenders.why_no_overlays(sample, ground.folder()))
        found = Runs(Task(sample, 8), ground, print).measure(taking_part, 7, weighed=False).times
    assert min(found.ratio(name) for name in found.spent if name.startswith("orchestrix")) < 1.5
