"""What runs leave is for the user alone, whatever the umask; another user's state home is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.workbench import Workbench, shell, write


@pytest.fixture
def open_umask() -> Iterator[None]:
    """New files would be for everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def below(folder: Path) -> Iterator[Path]:
    for top, folders, files in os.walk(folder):
        yield from (Path(top) / name for name in (*folders, *files))


def leaks(paths: Iterator[Path]) -> list[str]:
    """Folders that are not 0700 and files that are not 0600."""
    return [f"{mode(path):o} {path}" for path in paths if mode(path) != (0o700 if path.is_dir() else 0o600)]


@pytest.mark.usefixtures("open_umask")
def test_the_files_of_a_run_are_for_the_user_alone(bench: Workbench, hermetic: Path, tmp_path: Path) -> None:
    """Database, logs, reports, recordings, contracts and prompts are 0600, their folders 0700."""
    steps = (write("x.txt", "1\n"), shell("echo 2 > y.txt; echo said", owns=["y.txt"], checks=["true"]))
    local = bench.files / ".orchestrix/local"
    assert bench.run(*steps, flags=("--run-id", "r1", "--keep")).code == 0
    assert bench.call("record", "r1", "-o", str(tmp_path / "r1.zip")).code == 0
    replayed = bench.call("run", str(bench.plan(*steps)), "--run-id", "r2", "--replay", str(tmp_path / "r1.zip"))
    assert replayed.code == 0, replayed
    assert mode(local) == 0o700
    assert leaks(path for path in below(local) if path.name != ".gitignore") == []
    names = {path.name for path in below(local)}
    assert {"state.db", "run.md", "replay.zip", "step-0-result.md"} <= names
    state = hermetic / "state/orchestrix"
    (repository,) = state.iterdir()
    assert leaks(iter([state, repository, repository / "r1", repository / "r1/private"])) == []
    private = [path for path in below(repository / "r1/private") if path.name in ("contract.json", "prompt.md")]
    assert len(private) >= 2
    assert leaks(iter(private)) == []


@pytest.mark.usefixtures("open_umask")
def test_a_database_beside_which_a_log_stands_is_closed_with_it(bench: Workbench) -> None:
    """While a run has it open, the write-ahead log and the shared memory are 0600 as well."""
    look = f"stat -c %a {bench.files}/.orchestrix/local/state.db* > modes.txt"
    done = bench.run(shell(look, owns=["modes.txt"]), flags=("--sandbox", "none"))
    assert done.code == 0, done.out
    assert bench.tree(done.data["head"])["modes.txt"].split() == ["600", "600", "600"]


def test_what_an_earlier_version_left_open_is_closed(bench: Workbench) -> None:
    """The folder and the database of an older run, made with a usual umask."""
    assert bench.run(write("x.txt", "1\n")).code == 0
    local = bench.files / ".orchestrix/local"
    local.chmod(0o755)
    (local / "state.db").chmod(0o644)
    assert bench.run(write("z.txt", "1\n")).code == 0
    assert (mode(local), mode(local / "state.db")) == (0o700, 0o600)


def test_what_a_user_keeps_elsewhere_follows_the_umask(bench: Workbench, tmp_path: Path, monkeypatch) -> None:
    """The copy of a report in the checkout and a metrics file are the user's to share."""
    monkeypatch.setenv("ORCHESTRIX_TELEMETRY_METRICS_FILE", str(tmp_path / "shared/metrics.prom"))
    before = os.umask(0o022)
    try:
        assert bench.run(write("x.txt", "1\n")).code == 0
    finally:
        os.umask(before)
    assert mode(bench.files / ".orchestrix/step-0-result.md") == 0o644
    assert (mode(tmp_path / "shared/metrics.prom"), mode(tmp_path / "shared")) == (0o644, 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder another user's")
@pytest.mark.parametrize("linked", [False, True])
def test_another_users_state_home_is_refused(bench: Workbench, hermetic: Path, tmp_path: Path, linked: bool) -> None:
    """Exit 3 and one sentence, before a run exists; doctor says it, too."""
    home = hermetic / "state/orchestrix"
    home.parent.mkdir()
    if linked:
        (tmp_path / "mine").mkdir()
        home.symlink_to(tmp_path / "mine")
    else:
        home.mkdir()
    os.chown(home, 4242, 4242, follow_symlinks=False)
    plan = str(bench.plan(write("x.txt", "1\n")))
    for call in (("run", plan), ("ci", plan), ("run", plan, "--dry-run")):
        refused = bench.call(*call, "--json")
        assert (refused.code, refused.envelope["error"]["code"]) == (3, "environment"), call
        assert f"{home} belongs to user 4242, and you are user 0" in refused.envelope["error"]["message"]
    checks = {row["name"]: row for row in bench.call("doctor", "--json").data["checks"]}
    assert not checks["workspace"]["ok"]
    os.chown(home, 0, 0, follow_symlinks=False)
    assert bench.call("run", plan).code == 0


def test_a_state_home_that_everybody_can_change_is_refused(bench: Workbench, hermetic: Path) -> None:
    """One that is open to all is, a sticky one of the user's own is not."""
    home = hermetic / "state/orchestrix"
    home.mkdir(parents=True)
    home.chmod(0o777)
    refused = bench.run(write("x.txt", "1\n"))
    assert (refused.code, "every user can change" in refused.out) == (3, True), refused
    assert list(home.iterdir()) == []
    home.chmod(0o1777)
    assert bench.run(write("x.txt", "1\n")).code == 0
