"""The composite action: its script, run with the environment that a runner gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.workbench import ROOT, Workbench, write

from tests.ci.stories import outputs_in

_ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
_STEP: dict[str, Any] = _ACTION["runs"]["steps"][0]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An installed `orchestrix`."""
    path = tmp_path / "orchestrix"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m harness "$@"\n')
    path.chmod(0o755)
    return path


def _act(bench: Workbench, program: Path | None, **inputs: str) -> subprocess.CompletedProcess[str]:
    """What the runner does with the step: inputs become its environment, its `run` goes to bash."""
    given = {name: str(spec.get("default", "")) for name, spec in _ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    env = {
        variable: given[expression.removeprefix("${{ inputs.").removesuffix(" }}")]
        for variable, expression in _STEP["env"].items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _STEP["run"]],
        cwd=bench.files,
        env={
            **os.environ,
            **env,
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(bench.files),
            **({"ORCHESTRIX_BIN": str(program)} if program else {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_script_runs_the_plan_and_sets_the_outputs(bench, runner, program):
    """As a workflow would use it: a plan in the checkout, everything else by default."""
    bench.commit({"plan.json": json.dumps({"steps": [write("b.txt", "b\n")]})})
    done = _act(bench, program, plan="plan.json")
    assert done.returncode == 0, done.stderr
    found = outputs_in((runner / "output").read_text())
    assert set(found) == set(_ACTION["outputs"])
    assert (found["status"], found["merged_steps"], found["failed_steps"]) == ("succeeded", "1", "0")
    assert found["report_dir"] == str(runner / "orchestrix-artifacts")
    assert (Path(found["report_dir"]) / "junit.xml").is_file()
    assert bench.git("show", f"{found['branch']}:b.txt") == "b"


def test_every_input_reaches_its_option(bench, runner, tmp_path):
    """And none is read as anything else: options, spaces and shell text stay values."""
    echo = tmp_path / "echo"
    echo.write_text(f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([os.getcwd(), *sys.argv[1:]]))\n")
    echo.chmod(0o755)
    (bench.files / "sub dir").mkdir()
    done = _act(
        bench,
        echo,
        plan="--land",
        base="$(touch x)",
        into="a b",
        land="true",
        jobs="2",
        sandbox="none",
        artifacts="out; rm -rf x",
        working_directory="sub dir",
    )
    assert json.loads(done.stdout) == [
        str(bench.files / "sub dir"),
        "ci",
        "--land",
        "--base=$(touch x)",
        "--into=a b",
        "--jobs=2",
        "--sandbox=none",
        "--artifacts=out; rm -rf x",
        "--",
        "--land",
    ]


def test_inputs_are_never_part_of_the_script():
    """The text that bash gets has no expression in it; every input has its variable, every output its source."""
    assert "${{" not in _STEP["run"]
    assert sorted(_STEP["env"].values()) == sorted(f"${{{{ inputs.{name} }}}}" for name in _ACTION["inputs"])
    assert {name: spec["value"] for name, spec in _ACTION["outputs"].items()} == {
        name: f"${{{{ steps.{_STEP['id']}.outputs.{name} }}}}" for name in _ACTION["outputs"]
    }


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"plan": ""}, "the input plan is missing"),
        ({"plan": "p", "land": "yes\n::error::x"}, "the input land is true or false"),
        ({"plan": "p", "version": "1.0 --index-url=x"}, "the input version is a version number"),
    ],
)
def test_a_bad_input_is_refused_in_one_line(bench, runner, inputs, said):
    """Before anything is installed, and without repeating what was given."""
    done = _act(bench, None, **inputs)
    assert (done.returncode, done.stdout) == (2, f"::error title=orchestrix::{said}\n")


def test_a_missing_directory_is_refused(bench, runner, program):
    """As above, for the one input that needs the file system."""
    done = _act(bench, program, plan="p", working_directory="none\n::error::x")
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == "::error title=orchestrix::the input working-directory is not a directory\n"
