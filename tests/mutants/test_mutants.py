"""Deliberately broken builds: the suite must catch every one of them.

`.ci/test -m sweep tests/mutants` runs all of `mutants.toml`; the normal suite takes the quick ones. Each mutant is a
copy of the project with one piece of text replaced; only the tests that it names run, against the copy. A mutant whose
text is no longer there, or is there twice, fails loudly: the list is kept up with the code.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
from support.workbench import ROOT

_TESTS_FAILED = 1
_SECONDS = 300


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    quick: bool = False


MUTANTS = [
    Mutant(**{**row, "tests": tuple(row["tests"])})
    for row in tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())["mutant"]
]


def _copy(folder: Path) -> Path:
    """The project as far as its tests need it; nothing of the original can be imported from there."""
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc", "mutants")
    for name in ("harness", "tests", "fixtures"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the outer test run: neither its workers nor its coverage."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(_made(folder / "tmp")),
    }


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _pytest(folder: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    where = _python(folder, "-c", "import harness; print(harness.__file__)").stdout.strip()
    assert where == str(folder / "harness" / "__init__.py"), f"the copy is not what would be tested: {where}"
    flags = ("-x", "-m", "", "-p", "no:cacheprovider", "--rootdir", str(folder), "--basetemp", str(folder / "base"))
    return _python(folder, "-m", "pytest", *flags, *tests)


def _mutated(folder: Path, mutant: Mutant) -> None:
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    found = text.count(mutant.old)
    assert found == 1, f"{mutant.name}: its text is {found} times in {mutant.file}; bring mutants.toml up to date"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def _caught(folder: Path, mutant: Mutant) -> None:
    _mutated(_copy(folder), mutant)
    done = _pytest(folder, mutant.tests)
    assert done.returncode == _TESTS_FAILED, f"{mutant.name} survived:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"


@pytest.mark.parametrize("mutant", [item for item in MUTANTS if item.quick], ids=lambda item: item.name)
def test_a_sample_of_broken_builds_is_caught(tmp_path: Path, mutant: Mutant) -> None:
    """The quick ones."""
    _caught(tmp_path, mutant)


def test_every_mutant_still_fits_the_code() -> None:
    """Without running any of them: each text is there exactly once, and each named test file exists."""
    for mutant in MUTANTS:
        assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new
        for test in mutant.tests:
            path, _, function = test.partition("::")
            assert f"def {function.partition('[')[0]}" in (ROOT / path).read_text(encoding="utf-8"), test


@pytest.mark.sweep
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda item: item.name)
def test_every_broken_build_is_caught(tmp_path: Path, mutant: Mutant) -> None:
    """Each fails at least one of the tests that it names."""
    _caught(tmp_path, mutant)


@pytest.mark.sweep
def test_an_unbroken_build_passes_all_of_these_tests(tmp_path: Path) -> None:
    """Else a mutant would prove nothing; file by file, so that the time limit of a mutant is enough for each."""
    copy = _copy(tmp_path)
    tests = sorted({test for mutant in MUTANTS for test in mutant.tests})
    for file, named in groupby(tests, key=lambda test: test.partition("::")[0]):
        done = _pytest(copy, tuple(named))
        assert done.returncode == 0, f"{file}: {done.stdout[-3000:]}"
