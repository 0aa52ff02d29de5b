"""The scripts in .ci: what reaches the tests of CI, and what a desk without root is told."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.workbench import ROOT

import harness

_PARTS = ("demo", "test", "test-as-user", "agents")


def test_ci_lets_five_variables_through(tmp_path: Path) -> None:
    """No other can hide a fault from the tests; the parts run in order, and what CI is told they are told."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    show = "import json, os; print(json.dumps([os.path.basename(os.environ.pop('PART')), dict(os.environ)]))"
    for name in _PARTS:
        part = tmp_path / ".ci" / name
        part.write_text(f'#!/bin/sh\nPART=$0 exec "{sys.executable}" -c "{show}"\n')
        part.chmod(0o755)
    given = {"PATH": os.environ["PATH"], "HOME": "/there", "LANG": "C.UTF-8", "TERM": "dumb", "CI": "true"}
    odd = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "GIT_DIR": "/x", "ORCHESTRIX_JOBS": "1", "TZ": "X"}
    done = subprocess.run(["bash", tmp_path / ".ci/run"], env=given | odd, capture_output=True, text=True, check=True)
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, _ in seen] == list(_PARTS)
    for _, env in seen:
        assert {
            name: value for name, value in env.items() if name not in {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
        } == given


@pytest.mark.parametrize(
    ("ci", "code", "end"),
    [("", 0, "going on without: bubblewrap strace; tests that need them are skipped\n"), ("true", 1, "")],
)
def test_a_desk_without_root_is_told_what_is_missing(tmp_path: Path, ci: str, code: int, end: str) -> None:
    """By name, and it goes on with the rest; CI does not."""
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    script = ". .ci/bootstrap; wanted bwrap=bubblewrap strace=strace sh=sh"
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = subprocess.run(
        ["/bin/sh", "-euc", script],
        cwd=ROOT,
        env={"PATH": str(tmp_path), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    told = (
        "missing system packages: bubblewrap strace; install them as root (Debian: apt-get install bubblewrap strace)\n"
    )
    assert (done.returncode, done.stderr) == (code, told + end)


def test_every_supported_python_is_named_once() -> None:
    """The classifiers say which, and `.ci/pythons` reads them; the first is the oldest that installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [text.rsplit(" ", 1)[1] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert named == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == f">={named[0]}"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in named


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("harness/model/ids.py", "tests/model/test_ids.py"),
        ("harness/agents/acp/rules.py", "tests/agents"),
        ("harness/orchestrator/drive.py", "tests/orchestrator"),
        ("harness/namespace.py", "tests/test_namespace.py"),
    ],
)
def test_a_module_stands_for_its_tests(module: str, tests: str) -> None:
    """Its own file, or the folder that mirrors its package."""
    script = f"""eval "$(sed -n '/^tests_of/,/^}}/p' .ci/quick)"; tests_of {module}"""
    done = subprocess.run(["/bin/sh", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip().removeprefix("./") == tests


def test_the_version_stands_in_one_place() -> None:
    """The package's metadata reads it from the module, and the changelog has a section for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "harness.__version__"}
    assert f"\n## {harness.__version__}" in (ROOT / "CHANGELOG.md").read_text()
