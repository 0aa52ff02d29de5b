"""A run is recorded and done again without its agents: the same trees, the same failures, nothing private."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.checker import check
from support.workbench import ROOT, Result, Workbench, shell, write

GONE = "exec /no/such/agent"
ODD = r"""
set -e
printf 'a\000b\377' > bin.dat
printf 'exit 0\n' > tool.sh; chmod +x tool.sh
ln -s ../nowhere/else link
rm gone.txt
rm -r folder; printf 'a file now\n' > folder
printf 'odd\n' > "$(printf 'odd \377\n"name')"
chmod +x plain.txt
printf 'one\r\ntwo\n' > mixed.txt
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    made = _bench(tmp_path / "first")
    yield made
    assert check(made.files) == []


def _bench(folder: Path) -> Workbench:
    made = Workbench(folder)
    made.commit(
        {
            "a.txt": "start\n",
            "gone.txt": "gone\n",
            "folder/x": "x\n",
            "plain.txt": "plain\n",
            "wide.txt": "",
            ".gitattributes": "wide.txt working-tree-encoding=UTF-16LE\n",
        },
        "Start",
    )
    return made


def _other(tmp_path: Path, bench: Workbench) -> Workbench:
    """A second clone: nothing of the first one's runs is in it."""
    other = _bench(tmp_path / "second")
    other.git("fetch", "-q", str(bench.files), "main")
    other.git("reset", "-q", "--hard", "FETCH_HEAD")
    return other


def _trees(bench: Workbench) -> list[tuple[str, int, str]]:
    """Step, attempt and tree of every snapshot."""
    found = [event for event in bench.events() if event["type"] == "snapshot.taken"]
    return [(event["task_id"], event["payload"]["attempt"], event["payload"]["tree"]) for event in found]


def _head(bench: Workbench, done: Result) -> str:
    return bench.git("rev-parse", f"{done.data['head']}^{{tree}}")


def _replay(bench: Workbench, *flags: str) -> Result:
    return bench.call("run", str(bench.root / "plan.json"), "--json", "--replay", *flags)


def test_a_replay_gives_the_same_trees_without_the_agents(bench: Workbench, tmp_path: Path, monkeypatch) -> None:
    """A failing attempt, a conflict, modes, links, deletions, binaries and odd names come out the same elsewhere."""
    gate = tmp_path / "agents-are-here"
    gate.touch()
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
    steps = [
        shell(f"test -e {gate} || {GONE}; {ODD}", title="odd"),
        shell(f"test -e {gate} || {GONE}; echo one > a.txt", title="first", owns=["a.txt"], needs=[]),
        shell(f"test -e {gate} || {GONE}; echo two > a.txt", title="conflicts", owns=["a.txt"], needs=[]),
        shell(
            f'test -e {gate} || {GONE}; echo "$ORCHESTRIX_ATTEMPT" > half.txt; [ "$ORCHESTRIX_ATTEMPT" != 1 ]',
            title="second try",
            owns=["half.txt"],
            retries=1,
            checks=["test -s half.txt"],
        ),
        shell(f"test -e {gate} || {GONE}; printf 'w\\000\\344\\000' > wide.txt", title="wide", owns=["wide.txt"]),
        write("last.txt", "last\n", needs=[3]),
    ]
    ran = bench.run(*steps, overlap="allow")
    assert ran.reasons == ["merged", "merged", "merge_conflict", "merged", "merged", "merged"]
    file = tmp_path / "run.zip"
    recorded = bench.call("record", "-o", str(file), "--json")
    assert recorded.data == {"run_id": ran.data["run_id"], "file": str(file), "steps": 6, "attempts": 7}
    gate.unlink()
    other = _other(tmp_path, bench)
    other.plan(*steps, overlap="allow")
    again = _replay(other, str(file))
    assert again.reasons == ran.reasons
    assert sorted(_trees(other)) == sorted(_trees(bench))
    assert _head(other, again) == _head(bench, ran)
    assert check(other.files) == []
    assert not [event for event in other.events() if event["payload"].get("purpose") == "agent"]


def test_a_replay_tells_what_the_agent_told(bench: Workbench, tmp_path: Path) -> None:
    """Account, criteria, exceptions, exit code and output are those of the recording; usage says that it is one."""
    report = '---\ncriteria:\n  - {criterion: "it: works", met: true, evidence: "ünï"}\nownership_exceptions:\n  - {path: b.txt, reason: had to}\n---\nDid *it*.\n'
    script = f"echo said; echo x > a.txt; echo y > b.txt; cat > \"$ORCHESTRIX_REPORT_FILE\" <<'END'\n{report}END\n"
    step = shell(script, title="tell", owns=["a.txt"], success_criteria=["it: works"])
    bench.run(step, ownership_exceptions=True)
    file = tmp_path / "run.zip"
    assert bench.call("record", "-o", str(file)).code == 0
    other = _other(tmp_path, bench)
    other.plan(step, ownership_exceptions=True)
    assert _replay(other, str(file)).reasons == ["merged"]
    ends = [_end(each) for each in (bench, other)]
    for name in ("account", "criteria", "exit_code", "ok"):
        assert ends[0][name] == ends[1][name]
    assert ends[1]["usage"] == {"replayed": True}
    assert "said" in other.call("logs").out
    granted = [event["payload"]["path"] for event in other.events() if event["type"].startswith("ownership.")]
    assert granted == ["b.txt"]


def _end(bench: Workbench) -> dict[str, Any]:
    return next(event["payload"] for event in bench.events() if event["type"] == "attempt.finished")


def test_a_recording_that_does_not_fit_is_refused_before_anything_starts(bench: Workbench, tmp_path: Path) -> None:
    """Another step, another contract, another number of steps, no recording at all: exit 2 and the difference."""
    bench.run(write("x.txt", "x\n"), write("y.txt", "y\n"))
    file = tmp_path / "run.zip"
    bench.call("record", "-o", str(file))
    runs = bench.call("list", "--json").data["runs"]
    cases = [
        ([write("x.txt", "x\n")], "it holds 2 steps, the plan has 1"),
        ([write("x.txt", "x\n"), write("z.txt", "y\n")], "its step 1 is 'write y.txt', the plan's is 'write z.txt'"),
        (
            [write("x.txt", "x\n"), write("y.txt", "other\n")],
            "step 1 ('write y.txt') was recorded under another contract",
        ),
    ]
    for steps, words in cases:
        bench.plan(*steps)
        refused = _replay(bench, str(file))
        assert (refused.code, refused.envelope["error"]["message"]) == (2, f"{file} does not fit the plan: {words}")
    bench.plan(write("x.txt", "x\n"), write("y.txt", "y\n"))
    assert _replay(bench, str(tmp_path / "none.zip")).code == 2
    assert bench.call("list", "--json").data["runs"] == runs


def test_another_start_and_a_missing_attempt_fail_the_step(bench: Workbench, tmp_path: Path) -> None:
    """What only shows while it runs is the step's failure, `replay_mismatch`, and is not tried again."""
    fails = shell("exit 3", title="fails", owns=["z.txt"], retries=0)
    bench.run(write("x.txt", "x\n"), fails)
    file = tmp_path / "run.zip"
    bench.call("record", "-o", str(file))
    bench.plan(write("x.txt", "x\n"), fails)
    assert _replay(bench, str(file)).reasons == ["merged", "agent_failed"]
    retried = bench.call("retry", "latest", "1", "--json")
    assert retried.reasons == ["merged", "replay_mismatch"]
    assert "it holds 1 attempts, this is number 2" in retried.steps[1]["message"]
    bench.commit({"new.txt": "new\n"}, "Elsewhere")
    moved = _replay(bench, str(file))
    assert (moved.code, moved.reasons[0]) == (5, "replay_mismatch")
    assert "this step begins with another one" in moved.steps[0]["message"]


def test_retries_by_hand_are_replayed_by_the_same_commands(bench: Workbench, tmp_path: Path) -> None:
    """A step that was retried from the integration head is, in the replay, retried from the same one."""
    once = tmp_path / "once"
    step = shell(f"test -e {once} && echo done > z.txt", title="later", owns=["z.txt"])
    first = write("x.txt", "x\n")
    bench.run(first, step)
    once.touch()
    ran = bench.call("retry", "latest", "1", "--json")
    assert ran.reasons == ["merged", "merged"]
    file = tmp_path / "run.zip"
    bench.call("record", "-o", str(file))
    once.unlink()
    other = _other(tmp_path, bench)
    other.plan(first, step)
    assert _replay(other, str(file)).reasons == ["merged", "agent_failed"]
    again = other.call("retry", "latest", "1", "--json")
    assert again.reasons == ["merged", "merged"]
    assert _head(other, again) == _head(bench, ran)


def test_a_killed_replay_resumes_from_its_own_copy(bench: Workbench, tmp_path: Path) -> None:
    """The recording may be gone by then; an attempt that the coordinator died in has used up no recorded one."""
    step = shell('echo "$ORCHESTRIX_ATTEMPT" > n.txt; [ "$ORCHESTRIX_ATTEMPT" != 1 ]', owns=["n.txt"], retries=1)
    ran = bench.run(step)
    file = tmp_path / "run.zip"
    bench.call("record", "-o", str(file))
    other = _other(tmp_path, bench)
    plan = other.plan(step)
    killed = other.process("run", str(plan), "--replay", str(file), env={"ORCHESTRIX_FAILPOINT": "before:snapshot"})
    killed.communicate(timeout=60)
    assert killed.returncode == -9
    copy = next((other.files / ".orchestrix/local/runs").glob("*/replay.zip"))
    whole = file.read_bytes()
    file.unlink()
    copy.write_bytes(whole + b"more")
    refused = other.call("resume", "--json")
    assert (refused.code, "was changed" in refused.envelope["error"]["message"]) == (2, True)
    copy.write_bytes(whole)
    resumed = other.call("resume", "--json")
    assert resumed.reasons == ["merged"]
    assert _head(other, resumed) == _head(bench, ran)


def test_the_same_run_gives_the_same_file_and_it_holds_its_plan(bench: Workbench, tmp_path: Path) -> None:
    """Recordings can be compared and kept; the plan inside is the one that fits."""
    bench.run(write("x.txt", "x\n"))
    files = [tmp_path / "one.zip", tmp_path / "two.zip"]
    for file in files:
        bench.call("record", "-o", str(file))
    assert files[0].read_bytes() == files[1].read_bytes()
    (tmp_path / "inner.json").write_bytes(zipfile.ZipFile(files[0]).read("plan.json"))
    done = bench.call("run", str(tmp_path / "inner.json"), "--replay", str(files[0]), "--json")
    assert done.reasons == ["merged"]


def test_a_recording_holds_no_secret_and_no_place_of_this_machine(bench: Workbench, tmp_path, monkeypatch) -> None:
    """Output and account lose the key, the workspace, the checkout and the home; a file with the key is refused."""
    key = "correct-horse-battery"
    monkeypatch.setenv("MY_AGENT_KEY", key)
    monkeypatch.setenv("ORCHESTRIX_ENV_PASS", "MY_AGENT_KEY")
    script = (
        'echo "$MY_AGENT_KEY in $PWD and $HOME"; echo "$PWD $MY_AGENT_KEY" > "$ORCHESTRIX_REPORT_FILE"; echo x > x.txt'
    )
    bench.run(shell(script, owns=["x.txt"]))
    file = tmp_path / "run.zip"
    bench.call("record", "-o", str(file))
    with zipfile.ZipFile(file) as opened:
        told = b"".join(opened.read(name) for name in opened.namelist()).decode()
        log = opened.read("logs/step-0-attempt-1.log").decode()
    assert log == "<MY_AGENT_KEY> in <workspace> and <home>\n"
    for private in (key, str(bench.root), str(Path.home()), str(ROOT)):
        assert private not in told
    bench.run(shell('echo "$MY_AGENT_KEY" > leak.txt', owns=["leak.txt"]))
    refused = bench.call("record", "-o", str(tmp_path / "leak.zip"), "--json")
    assert refused.code == 2
    assert "attempt 1 of step 0 wrote <MY_AGENT_KEY> into 'leak.txt'" in refused.envelope["error"]["message"]
    assert not (tmp_path / "leak.zip").exists()


def test_a_run_that_goes_on_is_not_recorded(bench: Workbench) -> None:
    """Half a run would replay as another one."""
    plan = bench.plan(write("x.txt", "x\n"))
    killed = bench.process("run", str(plan), env={"ORCHESTRIX_FAILPOINT": "before:snapshot"})
    killed.communicate(timeout=60)
    assert "has not ended" in bench.call("record").err
    assert bench.call("resume", "--json").reasons == ["merged"]


def test_a_recording_is_data(bench: Workbench, tmp_path: Path) -> None:
    """Changed contents, forged names and broken files are refused; nothing is written outside the workspace."""
    bench.run(write("x.txt", "x\n"))
    file = tmp_path / "run.zip"
    bench.call("record", "-o", str(file))
    bench.plan(write("x.txt", "x\n"))

    def replayed(**changed: bytes) -> str:
        forged = tmp_path / "forged.zip"
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(forged, "w") as new:
            for name in old.namelist():
                key = next((key for key in changed if name.startswith(key)), "")
                new.writestr(name, changed.get(key) or old.read(name))
        done = _replay(bench, str(forged))
        return done.envelope["error"]["message"] if "data" not in done.envelope else done.steps[0]["message"]

    with zipfile.ZipFile(file) as opened:
        manifest = json.loads(opened.read("recording.json"))
    assert "is something else" in replayed(blobs=b"y\n")
    for path in ("../../out", ".git/config", "other"):
        manifest["steps"][0]["attempts"][0]["edits"][0]["path"] = path
        assert "its edits make tree" in replayed(recording=json.dumps(manifest).encode())
    assert "is not a whole recording" in replayed(recording=b"{}")
    file.write_bytes(b"PK not a zip")
    assert "is not a whole recording" in _replay(bench, str(file)).envelope["error"]["message"]
