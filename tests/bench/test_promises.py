"""What is promised is data; a measurement says for each of it: kept, broken or not measured."""

from __future__ import annotations

import pytest

from bench import promises, sizes, stages
from bench.contenders import OVERLAY
from bench.matrix import Found
from bench.promises import PROMISES
from bench.timing import Comparison, Spent


def single(name: str, ratio: float, by: str = OVERLAY) -> Comparison:
    return Comparison({name: [Spent(1.0, 1.0)], by: [Spent(ratio, ratio)]}, name, {})


@pytest.mark.parametrize("wanted", [sizes.PROMISED, sizes.FULL], ids=["promised", "full"])
def test_both_large_sets_answer_every_promise(wanted: sizes.Sizes, made) -> None:
    """No promise is about a size, a contender or a name that is never measured."""
    found = Found(load=0.0)
    for size in wanted.runs:
        case = made(size.files, size.steps)
        absent = case.times.rounds.keys() - set(size.who)
        for name in absent:
            del case.times.rounds[name]
        found.cases.append(case)
    names = (stages.ADD, stages.COMMIT, stages.MERGE)
    found.stages |= {(files, name): single(name, 0.001) for files in wanted.stages for name in names}
    assert [verdict.kept for verdict in promises.verdicts(found)] == [True] * len(PROMISES)


def test_a_broken_promise_and_one_that_was_not_measured(made) -> None:
    """A fortieth is more than a hundredth; what was not looked at is neither kept nor broken."""
    found = Found([made(500, 8), made(200, 1000)], {(60_000, stages.ADD): single(stages.ADD, 1 / 40)})
    said = {verdict.promise.work: (verdict.measured, verdict.kept) for verdict in promises.verdicts(found)}
    assert said["workspace, 60,000 files"] == (1 / 40, False)
    assert said["workspace, 7,000 files"] == (None, None)
    assert said["whole run, 8 steps, 500 files"] == (0.01, True)
    assert said["a step of 1,000 beyond its command, 200 files"] == (pytest.approx(8.0), True)
    assert said["1,000 steps against 100, 200 files"] == (None, None)
    found.cases.append(made(200, 100))
    said = {verdict.promise.work: (verdict.measured, verdict.kept) for verdict in promises.verdicts(found)}
    assert said["1,000 steps against 100, 200 files"] == (pytest.approx(10.0), True)


def test_stages_of_another_kind_of_workspace_are_no_answer() -> None:
    """The limits of single stages are those of overlays."""
    times = single(stages.ADD, 0.9, by="orchestrix, checkout")
    assert promises.values(Found([], {(7_000, stages.ADD): times})) == {}
