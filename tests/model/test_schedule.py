"""The order of work: needs, implied needs, waves, the critical path, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.calls import calls_in

from harness.model import graph
from harness.model.globs import Ownership, overlap
from harness.model.needs import Problem
from harness.model.plan import Plan
from harness.model.schedule import Reason, schedule


def _plan(*steps, **fields):
    return Plan.model_validate({"steps": [{"title": f"Step {n}", **step} for n, step in enumerate(steps)], **fields})


DIAMOND = _plan(
    {"id": "base", "owns": ["a"]},
    {"needs": ["base"], "owns": ["b"]},
    {"needs": [0], "owns": ["c"]},
    {"needs": [1, 2], "owns": ["d"]},
    {"owns": ["a/x", "e"]},
)


def test_needs_are_resolved_and_implied():
    """Ids and indices become indices; overlapping ownership adds a need on the earlier step, with its reason."""
    order = schedule(DIAMOND)
    assert [step.needs for step in order.steps] == [(), (0,), (0,), (1, 2), ()]
    assert [step.implied_needs for step in order.steps] == [(), (), (), (), (0,)]
    assert order.reasons(4) == (Reason(0, 4, ("a", "a/x")),)
    assert [order.closure(idx) for idx in range(5)] == [(), (0,), (0,), (0, 1, 2), (0,)]
    assert order.problems == ()


def test_waves_and_critical_path():
    """Waves hold what may run together; the critical path is the longest chain through the earliest steps."""
    order = schedule(DIAMOND)
    assert order.waves == ((0,), (1, 2, 4), (3,))
    assert order.critical_path == (0, 1, 3)


def test_a_need_through_needs_is_not_implied_again():
    """An overlap with a step that is needed already, also through another one, adds nothing."""
    order = schedule(_plan({"owns": ["a"]}, {"owns": ["b"], "needs": [0]}, {"owns": ["a"], "needs": [1]}))
    assert order.steps[2].implied_needs == ()
    assert order.closure(2) == (0, 1)


def test_steps_that_own_everything_run_one_by_one():
    """Every earlier step is an implied need; the nearest one is enough to tell and draw."""
    order = schedule(_plan({}, {}, {}))
    assert [step.implied_needs for step in order.steps] == [(), (0,), (0, 1)]
    assert order.nearest(2) == (1,)
    assert order.waves == ((0,), (1,), (2,))


def test_overlap_allow_records_the_pairs():
    """Under `allow` nothing is implied, and the pairs that no need orders are listed."""
    order = schedule(_plan({"owns": ["a"]}, {"owns": ["a"]}, {"owns": ["a"], "needs": [0]}, overlap="allow"))
    assert order.overlaps == ((0, 1), (1, 2))
    assert order.waves == ((0, 1), (2,))


def test_overlap_refuse_names_steps_patterns_and_the_need():
    """Under `refuse` each missing need is a problem; once they are written, the plan is good."""
    steps = [{"owns": ["src"]}, {"owns": ["docs"]}, {"owns": ["docs/a", "src/*.py"], "needs": [1]}]
    told = "step 2 may change what step 0 changes (src/*.py meets src), and `overlap: refuse` wants that written"
    assert schedule(_plan(*steps, overlap="refuse")).problems == (Problem(("steps", 2, "owns"), told, "needs: [1, 0]"),)
    steps[2]["needs"] = [1, 0]
    assert schedule(_plan(*steps, overlap="refuse")).problems == ()


def test_refuse_asks_for_few_needs():
    """A chain of steps that own everything asks each for the one before it, not for all pairs."""
    problems = schedule(_plan(*[{}] * 50, overlap="refuse")).problems
    assert [problem.suggestion for problem in problems] == [f"needs: [{idx}]" for idx in range(49)]


def test_every_bad_need_is_a_problem_at_its_place():
    """Unknown, later, cyclic, own and repeated needs and repeated ids are all found in one go."""
    order = schedule(
        _plan(
            {"id": "a", "needs": ["b"]},
            {"id": "b", "needs": ["a", 0, 1, 7, "c", "2", 2]},
            {"id": "a"},
        )
    )
    assert {field_of(problem): problem.message for problem in order.problems} == {
        "steps/2/id": "'a' is the id of step 0 already",
        "steps/0/needs/0": "step 1 comes later and needs this one: a cycle",
        "steps/1/needs/1": "step 0 is needed twice",
        "steps/1/needs/2": "a step cannot need itself",
        "steps/1/needs/3": "there is no step 7",
        "steps/1/needs/4": "there is no step 'c'",
        "steps/1/needs/5": "there is no step '2'",
        "steps/1/needs/6": "step 2 comes later and needs point to earlier steps only",
    }


def field_of(problem):
    return "/".join(map(str, problem.field))


def test_a_quoted_index_is_explained():
    """`needs: ["0"]` looks for an id; the suggestion says how an index is written."""
    assert schedule(_plan({}, {"needs": ["0"]})).problems[0].suggestion == "an index is written without quotes: 0"


def test_explain_tells_who_waits_and_why():
    """The text names waves, titles, reasons and the critical path."""
    assert graph.explain(DIAMOND, schedule(DIAMOND)) == [
        "5 steps in 3 waves",
        "wave 1, runs alone:",
        "  0 Step 0",
        "wave 2, run together:",
        "  1 Step 1",
        "      waits for 0: needs",
        "  2 Step 2",
        "      waits for 0: needs",
        "  4 Step 4",
        "      waits for 0: a of 0 and a/x of 4 may be the same path",
        "wave 3, runs alone:",
        "  3 Step 3",
        "      waits for 1: needs",
        "      waits for 2: needs",
        "critical path: 0 -> 1 -> 3 (3 steps)",
    ]


def test_explain_counts_what_it_does_not_tell():
    """Large plans get a count in place of thousands of lines, also for allowed overlaps."""
    crowd = _plan(*[{}] * 9, overlap="allow")
    assert graph.explain(crowd, schedule(crowd))[-1] == "overlap allowed: 31 pairs more"
    chain = _plan({}, {}, {})
    assert "      waits for 1 earlier step more: ownership overlaps" in graph.explain(chain, schedule(chain))


def test_mermaid_draws_needs_and_ownership():
    """Written needs are solid arrows, implied ones dotted."""
    assert graph.mermaid(DIAMOND, schedule(DIAMOND)) == (
        "flowchart TD\n"
        '  s0["0: Step 0"]\n  s1["1: Step 1"]\n  s2["2: Step 2"]\n  s3["3: Step 3"]\n  s4["4: Step 4"]\n'
        "  s0 --> s1\n  s0 --> s2\n  s1 --> s3\n  s2 --> s3\n  s0 -. owns .-> s4\n"
    )


@pytest.mark.parametrize(
    "title", ['"]; click s0 "x', "a]] --> b", "<img src=x onerror=alert(1)>", "```\nx", "#quot; &lt;"]
)
def test_titles_stay_text_in_mermaid(title):
    """No title can end its label, start a tag or a code fence."""
    plan = Plan.model_construct(steps=[DIAMOND.steps[0].model_copy(update={"title": title})], overlap="serialize")
    label = graph.mermaid(plan, schedule(plan)).splitlines()[1].removeprefix('  s0["0: ').removesuffix('"]')
    assert not set(label) & set('"[]<>`{}|&\\')


STEPS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "owns": st.lists(st.sampled_from(["a", "a/x", "b", "*", "b/*.py", "c/**"]), min_size=1, max_size=2),
            "needs": st.lists(st.integers(0, 9), max_size=2, unique=True),
        },
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(STEPS)
def test_steps_that_may_meet_are_always_ordered(steps):
    """For any plan: overlapping steps are ordered, closures are closed, a wave holds no two that are ordered."""
    for idx, step in enumerate(steps):
        step["needs"] = [need for need in step.get("needs", []) if need < idx]
    plan = _plan(*steps)
    order = schedule(plan)
    owned = [Ownership(step.owns) for step in plan.steps]
    for later in range(len(steps)):
        before = order.closure(later)
        assert all(set(order.closure(need)) <= set(before) for need in before)
        assert all(earlier in before for earlier in range(later) if overlap(owned[earlier], owned[later]))
    assert all(one not in order.closure(two) for wave in order.waves for one in wave for two in wave)
    assert sorted(idx for wave in order.waves for idx in wave) == list(range(len(steps)))
    assert len(order.critical_path) == len(order.waves)


@pytest.mark.parametrize(
    "step",
    [lambda n: {}, lambda n: {"owns": [f"src/m{n}/**", f"tests/*_{n}.py"]}, lambda n: {"needs": [*range(0, n, 97)]}],
    ids=["own everything", "disjoint", "many needs"],
)
def test_the_largest_plan_is_quick(step):
    """5,000 steps are scheduled, told and drawn: a few hundred calls for each, and no comparison of all pairs."""

    def work(steps):
        each = [{"id": None, "owns": None, "needs": []} | step(n) for n in range(steps)]
        plan = Plan.model_construct(
            steps=[DIAMOND.steps[0].model_copy(update=change) for change in each], overlap="serialize"
        )

        def draw():
            order = schedule(plan)
            graph.explain(plan, order)
            graph.mermaid(plan, order)

        return calls_in(draw)

    half, whole = work(2500), work(5000)
    assert whole < 300 * 5000
    assert whole < 3 * half  # pairs would make it four times as much
