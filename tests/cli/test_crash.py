"""A bug in the harness is no failed step: exit 70, one envelope, a crash file, and a run that can be resumed."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.checker import check
from support.workbench import Workbench, shell, write

from harness.ci import page
from harness.cli import output
from harness.engine import reports
from harness.model import limits
from harness.orchestrator.nodes import task as task_nodes
from harness.store.sqlite import SqliteStore
from harness.vcs.repository import Repository

_SECRET = "hunter2-hunter2"
_STEPS = (write("x.txt", "1\n"), shell("echo 2 > y.txt", owns=["y.txt"]))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setenv("SOME_API_KEY", _SECRET)
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\n"})
    yield made
    assert check(made.files) == []


def broken(*_args: object, **_kwargs: object) -> None:
    raise KeyError(f"a bug that knows {_SECRET}")


def after(calls: int, real: Callable[..., object]) -> Callable[..., object]:
    """The real thing, until it was called so often."""
    count = iter(range(1_000_000))
    return lambda *args, **kwargs: real(*args, **kwargs) if next(count) < calls else broken()


_PLACES: dict[str, tuple[object, str, object]] = {
    "node": (task_nodes, "_attempt", broken),
    "node of the merge": (task_nodes, "_update", broken),
    "snapshot": (Repository, "snapshot", broken),
    "merge": (Repository, "merge", broken),
    "report": (reports, "replace", broken),
    "store": (SqliteStore, "append", after(6, SqliteStore.append)),
    "record": (Repository, "write_record", broken),
}


def crash_of(envelope: dict[str, object], home: Path) -> str:
    """The crash file that the one error names: private, in the state folder, without the secret."""
    error = envelope["error"]
    assert isinstance(error, dict)
    path = Path(error["crash_file"])
    assert path.is_relative_to(home / "state/orchestrix/crashes")
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    text = path.read_text()
    assert _SECRET not in text + json.dumps(envelope)
    assert str(path) in error["hint"]
    return text


@pytest.mark.parametrize("place", _PLACES)
def test_a_bug_anywhere_in_a_run_is_exit_70_and_the_run_can_be_resumed(
    bench: Workbench, hermetic: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """One envelope with `internal`, versions, traceback and events in the file; then resume merges everything."""
    with monkeypatch.context() as patch:
        patch.setattr(*_PLACES[place])
        crashed = bench.run(*_STEPS, flags=("--run-id", "r1"))
    assert crashed.code == 70, crashed
    error = crashed.envelope["error"]
    assert (error["code"], error["run_id"]) == ("internal", "r1"), error
    assert "KeyError" in error["message"]
    assert "orchestrix resume r1" in error["hint"]
    text = crash_of(crashed.envelope, hermetic)
    assert all(word in text for word in ("orchestrix: ", "python: ", "Traceback", "in broken", '"run.created"'))
    failed = [event for event in bench.events("r1") if "failed" in event["type"] or event["type"] == "run.finished"]
    assert place == "record" or failed == []
    resumed = bench.call("resume", "r1", "--json")
    assert (resumed.code, resumed.reasons) == (0, ["merged", "merged"]), resumed


def test_a_bug_in_the_heartbeat_stops_the_run(
    bench: Workbench, hermetic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator without heartbeats would be taken for dead while it works."""
    with monkeypatch.context() as patch:
        patch.setattr(limits, "LEASE_HEARTBEAT_MS", 20)
        patch.setattr(SqliteStore, "heartbeat", broken)
        crashed = bench.run(shell("sleep 60"), *_STEPS, flags=("--run-id", "r1"))
    assert (crashed.code, crashed.envelope["error"]["code"]) == (70, "internal"), crashed
    crash_of(crashed.envelope, hermetic)
    assert bench.call("status", "r1", "--json").data["status"] == "waiting"


def test_a_bug_while_the_result_is_printed_is_told_once(
    bench: Workbench, hermetic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the envelope it takes its place; after it stdout has one all the same, and stderr the error."""
    real = output.emit
    monkeypatch.setattr(output, "emit", broken)
    before = bench.run(*_STEPS)
    assert (before.code, before.envelope["error"]["code"]) == (70, "internal")
    monkeypatch.setattr(output, "emit", lambda data: (real(data), broken()))
    late = bench.call("status", "--json")
    assert (late.code, late.envelope["ok"]) == (70, True)
    assert "internal error in harness/cli/commands/status.py" in late.err
    assert len(late.err.splitlines()) == 1
    crash_of(before.envelope, hermetic)


@pytest.mark.parametrize(
    "place", [(task_nodes, "_update"), (page, "render"), (SqliteStore, "append")], ids=["node", "page", "store"]
)
def test_a_bug_in_a_ci_job_is_published_as_such(
    bench: Workbench, hermetic: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: tuple[object, str]
) -> None:
    """Exit 70, one envelope, an error case in the JUnit file; nothing says that a step failed."""
    plan = str(bench.plan(*_STEPS))
    with monkeypatch.context() as patch:
        patch.setattr(*place, broken)
        done = bench.call("ci", plan, "--artifacts", str(tmp_path / "out"), "--json")
    assert (done.code, done.envelope["error"]["code"]) == (70, "internal"), done
    crash_of(done.envelope, hermetic)
    junit = (tmp_path / "out/junit.xml").read_text()
    assert 'type="internal"' in junit
    assert 'failures="0"' in junit
    if place[0] is SqliteStore:
        assert bench.run(*_STEPS).code == 0


def test_crash_files_do_not_pile_up_and_need_no_repository(
    bench: Workbench, hermetic: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The newest are kept; outside of a repository, and where the state home is in the way, one is written as well."""
    assert bench.run(*_STEPS).code == 0
    monkeypatch.setattr(limits, "CRASH_FILES", 3)
    monkeypatch.setattr(output, "line", broken)
    named = [bench.call("version").err for _ in range(5)]
    left = sorted((hermetic / "state/orchestrix/crashes").iterdir())
    assert len(left) == 3
    assert str(left[-1]) in named[-1]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "state").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(outside / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(outside))
    assert bench.call("-C", str(outside), "version").code == 70
    assert len(list(outside.glob("crash-*.txt"))) == 1


def test_an_expected_error_writes_no_crash_file(bench: Workbench, hermetic: Path) -> None:
    """Wrong usage, a missing run and a failed step are no bugs."""
    assert bench.run(shell("false")).code == 1
    for call in (("run",), ("status", "nope"), ("run", "nope.yaml"), ("--nope",)):
        assert bench.call(*call).code == 2, call
    assert not (hermetic / "state/orchestrix/crashes").exists()
