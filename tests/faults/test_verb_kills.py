"""kill -9 of every verb that changes something: the verb, given again, comes to the right end, and nothing is lost.

`pytest -m sweep tests/faults/test_verb_kills.py` kills at every system call that touches the repository, the log or a
workspace, of the verb itself and of the git programs that it starts; a handful runs with every change.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from faults import points
from faults.held import LiveRun, held
from faults.points import Fault
from faults.stage import Launcher, Stage, told
from support import checker
from support.workbench import Result, Workbench, shell, write

_QUICK = 3
_SHARES = 4
_SOME_OPENS = 6


@dataclass(frozen=True)
class VerbStage(Stage):
    """A copy of the template on which a verb is tried."""

    verb: tuple[str, ...] = ()

    @property
    def run_arguments(self) -> tuple[str, ...]:
        return self.verb

    def wants(self, *argv: str, code: int = 0) -> Result:
        done = self.call(*argv)
        assert done.code == code, (argv, done.out, done.err)
        return done


@dataclass(frozen=True)
class Verb:
    """How the stage is set, what is typed, and what is typed after a kill until it is done."""

    typed: tuple[str, ...]
    before: Callable[[VerbStage], object]
    again: Callable[[VerbStage], list[Result]]
    done: tuple[int, ...] = (0,)  # how the last word may end
    movable: bool = True  # whether a prepared stage may be copied


def _flawed(stage: VerbStage) -> None:
    """Step 1 fails in its first attempt, and leaves work."""
    stage.wants("run", str(stage.root / "flawed.json"), "--json", code=1)


def _landed(stage: VerbStage, *flags: str) -> None:
    stage.wants("run", str(stage.root / "plan.json"), "--json", *flags)


def _dirty(stage: VerbStage) -> None:
    (stage.repo / "mine.txt").write_text("the user's\n")
    (stage.repo / "more/0.txt").write_text("the user's\n")


def _retried(stage: VerbStage) -> list[Result]:
    """A kill before the first fact leaves the step closed as failed; after it, the run has something to resume."""
    done = stage.call("resume", "--json")
    return [done] if done.code == 0 else [done, stage.call("retry", "latest", "1", "--json")]


def _landed_and_dirty(stage: VerbStage, *flags: str) -> None:
    _landed(stage, *flags)
    _dirty(stage)


VERBS = {
    "land": Verb(("land", "--json"), _landed_and_dirty, lambda stage: [stage.call("land", "--json")]),
    "undo": Verb(
        ("undo", "--json"),
        lambda stage: _landed_and_dirty(stage, "--land"),
        lambda stage: [stage.call("undo", "--json")],
        done=(0, 2),  # a kill after the last fact leaves nothing to undo
    ),
    "restore": Verb(
        ("restore", "latest", "--json"), _flawed, lambda stage: [stage.call("restore", "latest", "--json")]
    ),
    "retry": Verb(("retry", "latest", "1", "--json"), _flawed, _retried),
    "clean": Verb(
        ("clean", "--json"),
        lambda stage: _landed(stage, "--keep"),
        lambda stage: [stage.call("clean", "--json")],
        movable=False,
    ),
    "record": Verb(
        ("record", "latest", "-o", "made.zip", "--json"),
        _landed,
        lambda stage: [stage.call("record", "latest", "-o", "made.zip", "--json")],
    ),
}


def _template(folder: Path) -> Path:
    bench = Workbench(folder)
    more = {f"more/{number}.txt": "more\n" for number in range(30)}
    bench.commit({"a.txt": "start\n", "old.txt": "old\n", **more}, "Start")
    new = "for n in $(seq 30); do echo new > new/$n.txt; done"
    many = shell(f"mkdir new; {new}; rm old.txt", title="many", owns=["new/**", "old.txt"])
    half = 'echo half > half.txt; [ "$ORCHESTRIX_ATTEMPT" != 1 ]'
    bench.plan(many, shell(half, title="flawed", owns=["half.txt"], retries=0), write("a.txt", "landed\n"))
    (folder / "plan.json").rename(folder / "flawed.json")
    bench.plan(many, write("half.txt", "half\n"), write("a.txt", "landed\n"))
    return folder


class Rig:
    def __init__(self, folder: Path, launcher: Launcher, verb: Verb) -> None:
        self._folder, self._launcher, self._verb = folder, launcher, verb
        self._template = _template(folder / "template")
        if verb.movable:
            verb.before(self._copied(self._template, "prepared"))
        undisturbed = self.stage("undisturbed")
        self._kept = undisturbed.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/orchestrix/keep")
        undisturbed.wants(*verb.typed)
        self.wanted = self.end(undisturbed)
        ways = [*points.in_coordinator(self.stage("coordinator")), *points.in_git(self.stage("git"))]
        kills = sorted({replace(fault, how="kill") for fault in ways})
        # Most files are opened to be read: a share of these is enough.
        opens = [fault for fault in kills if fault.syscall == "openat"]
        self.kills = sorted({*kills} - {*opens} | {*opens[::_SOME_OPENS]})

    def _copied(self, source: Path, name: str) -> VerbStage:
        return replace(VerbStage.copy(source, self._folder / name, self._launcher, "auto"), verb=self._verb.typed)

    def stage(self, name: str) -> VerbStage:
        if self._verb.movable:
            return self._copied(self._folder / "prepared", name)
        made = self._copied(self._template, name)
        self._verb.before(made)
        return made

    def end(self, stage: VerbStage) -> dict[str, str]:
        """Everything that a user sees: branches, files, and what git says of them; the checker looks after what is kept."""
        refs = stage.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
        files = sorted(path for path in stage.repo.rglob("*") if path.is_file() and ".git/" not in str(path))
        shown = {str(path.relative_to(stage.repo)): path.read_text(errors="replace") for path in files}
        ours = {
            name: text for name, text in shown.items() if not name.startswith(".orchestrix/") and name != "made.zip"
        }
        return {
            **ours,
            "refs": "\n".join(line for line in refs.splitlines() if "/integration" not in line),
            "status": stage.git("status", "--porcelain", "--untracked-files=all"),
            "branch": stage.git("symbolic-ref", "HEAD"),
            "recorded": str((stage.repo / "made.zip").exists()),
            "locks": str(list((stage.repo / ".git").rglob("*.lock"))),
        }

    def problems(self, fault: Fault, number: int) -> str:
        stage = self.stage(f"kill-{number}")
        first = fault.play(stage)
        results = [first, *self._verb.again(stage)]
        found = [problem for result in results for problem in told(result)]
        if results[-1].code not in self._verb.done:
            found.append(f"exits {[result.code for result in results]}: {results[-1].out}{results[-1].err}")
        found += [*checker.check(stage.repo), *self._lost(stage)]
        end = self.end(stage)
        found += [
            f"{name}: {end.get(name)!r:.200}" for name in {*end, *self.wanted} if end.get(name) != self.wanted.get(name)
        ]
        if found:
            return f"{fault}: {found}"
        shutil.rmtree(stage.root)
        return ""

    def _lost(self, stage: VerbStage) -> list[str]:
        """What was kept before the verb and is not any more."""
        listing = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/orchestrix/keep")
        kept = {*self._kept.splitlines()} - {*stage.git(*listing).splitlines()}
        return [f"lost: {row}" for row in sorted(kept)]

    def play(self, faults: list[Fault]) -> list[str]:
        return [problem for number, fault in enumerate(faults) if (problem := self.problems(fault, number))]


@pytest.fixture(params=VERBS)
def rig(strace: None, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    with Launcher() as launcher:
        yield Rig(tmp_path, launcher, VERBS[request.param])


def test_a_sample_of_kills_of_each_verb_ends_well(rig: Rig) -> None:
    """The quick subset: a few places, spread over the verb and its git programs."""
    assert len(rig.kills) >= _QUICK
    assert rig.play(rig.kills[len(rig.kills) // (2 * _QUICK) :: len(rig.kills) // _QUICK][:_QUICK]) == []


@pytest.mark.sweep
@pytest.mark.parametrize("share", range(_SHARES))
def test_every_kill_of_each_verb_ends_well(rig: Rig, share: int) -> None:
    """All places, in shares that can be played side by side."""
    assert rig.play(rig.kills[share::_SHARES]) == []


def _cancel_is_killed(launcher: Launcher, folder: Path, play: Callable[[VerbStage], object]) -> list[str]:
    """A live run, a cancel that is disturbed, and another one: the run stops, its log and work are whole, and it can be resumed."""
    bench = Workbench(folder)
    bench.commit({"a.txt": "a\n"}, "Start")
    bench.plan(held("held.txt"))
    stage = VerbStage(folder, launcher, checker.fingerprint(bench.files), "auto", ("cancel", "latest", "--json"))
    run = LiveRun(bench, state_home=folder / "state")
    run.workspace()
    play(stage)
    again = stage.call(*stage.verb)
    code = run.process.wait(timeout=60)
    run.process.communicate()
    problems = [*told(again), *checker.check(bench.files)]
    # Two requests to stop are one too many: the coordinator then goes at once, as after a kill.
    resumed = stage.call("resume", "--json")
    if again.code not in (0, 2) or not code or resumed.code:
        problems.append(f"cancel {again.code}, run {code}, resume {resumed.code}: {again.out}{resumed.out}")
    return [*problems, *checker.check(bench.files)]


def _kills_of_cancel(launcher: Launcher, folder: Path) -> list[Fault]:
    found: list[Fault] = []
    traced = _cancel_is_killed(launcher, folder, lambda stage: found.extend(points.in_coordinator(stage)))
    assert traced == []
    return sorted({replace(fault, how="kill") for fault in found})


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("share", [pytest.param(0, id="sample"), pytest.param(1, id="all", marks=pytest.mark.sweep)])
def test_a_cancel_that_is_killed_can_be_given_again(tmp_path: Path, share: int) -> None:
    """Whether it had asked the coordinator to stop or not."""
    with Launcher() as launcher:
        kills = _kills_of_cancel(launcher, tmp_path / "traced")
        chosen = kills[:: 1 if share else max(len(kills) // 2, 1)]
        for number, fault in enumerate(chosen):
            assert _cancel_is_killed(launcher, tmp_path / str(number), fault.play) == [], fault
