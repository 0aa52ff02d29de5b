"""What is promised is data; a measurement says for each of it: kept, broken or not measured."""

from __future__ import annotations

from bench import promises, stages
from bench.matrix import FULL, Found
from bench.promises import OVERLAY, PROMISES
from bench.timing import Comparison, Spent


def single(name: str, ratio: float) -> Comparison:
    return Comparison({name: Spent(1.0, 1.0), OVERLAY: Spent(ratio, ratio)}, {})


def test_the_full_matrix_answers_every_promise(made) -> None:
    """No promise is about a size or a name that is never measured."""
    cases = [made(files, steps) for files, several in FULL.steps.items() for steps in several]
    names = (stages.ADD, stages.COMMIT, stages.MERGE)
    found = Found(cases, {(files, name): single(name, 0.001) for files in FULL.stages for name in names})
    assert [verdict.kept for verdict in promises.verdicts(found)] == [True] * len(PROMISES)


def test_a_broken_promise_and_one_that_was_not_measured(made) -> None:
    """A fortieth is more than a hundredth; what was not looked at is neither kept nor broken."""
    found = Found([made(500, 8)], {(60_000, stages.ADD): single(stages.ADD, 1 / 40)})
    said = {verdict.promise.work: (verdict.measured, verdict.kept) for verdict in promises.verdicts(found)}
    assert said["workspace, 60,000 files"] == (1 / 40, False)
    assert said["workspace, 7,000 files"] == (None, None)
    assert said["whole run, 8 steps, 500 files"] == (0.01, True)


def test_stages_of_another_kind_of_workspace_are_no_answer() -> None:
    """The limits of single stages are those of overlays."""
    times = Comparison({stages.ADD: Spent(1.0, 1.0), "orchestrix, checkout": Spent(0.9, 0.9)}, {})
    assert promises.values(Found([], {(7_000, stages.ADD): times})) == {}
