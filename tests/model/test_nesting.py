"""A child's contract is never wider than its parent's, whatever it asks for; names and plans of nested runs are functions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import limits, nesting
from harness.model.contract import Contract, Execution, Limits, Ownership, Parent, Permissions, StepText, Work
from harness.model.globs import Ownership as Boundary
from harness.model.ids import RunId, TaskId
from harness.model.plan import Plan

PATHS = ("a.txt", "src/**", "src/x.py", "src/*.py", "docs/", "**", "tests/unit/**")
FILES = ("a.txt", "src/x.py", "src/deep/y.py", "docs/page.md", "tests/unit/t.py", "other")

contracts = st.builds(
    Contract,
    parent=st.just(Parent(run_id="r", step_idx=0, task_prompt="", goal_summary="")),
    step=st.just(StepText(title="t", description="")),
    permissions=st.builds(
        Permissions,
        allowed_tools=st.lists(st.sampled_from(["read_file", "run", "shell", "write_file"]), unique=True).map(tuple),
        can_spawn_children=st.booleans(),
        max_delegation_depth=st.integers(0, 4),
    ),
    execution=st.builds(
        Execution,
        attempt_timeout_ms=st.integers(1, 10_000),
        max_retries=st.integers(0, 5),
        close_on_completion=st.just(True),
    ),
    ownership=st.builds(
        Ownership,
        paths=st.none() | st.lists(st.sampled_from(PATHS), min_size=1, max_size=3).map(tuple),
        exceptions_allowed=st.booleans(),
    ),
    sandbox=st.sampled_from(["auto", "bwrap", "none"]),
    limits=st.builds(
        Limits,
        inactivity_timeout_ms=st.none() | st.integers(1, 9),
        files=st.integers(1, 9),
        memory_bytes=st.sampled_from([0, 5, 9]),
    ),
    work=st.just(Work(agent="command")),
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(contracts, contracts)
def test_a_narrowed_contract_is_in_nothing_wider_than_its_parent(child: Contract, parent: Contract):
    """Tools, depth, times, retries, ownership, exceptions, limits and sandbox."""
    made = nesting.narrowed(child, parent)
    assert set(made.permissions.allowed_tools) <= set(parent.permissions.allowed_tools)
    assert made.permissions.max_delegation_depth <= max(0, parent.permissions.max_delegation_depth - 1)
    assert made.permissions.can_spawn_children <= parent.permissions.can_spawn_children
    assert made.execution.attempt_timeout_ms <= parent.execution.attempt_timeout_ms
    assert made.execution.max_retries <= parent.execution.max_retries
    assert made.sandbox == parent.sandbox
    assert made.limits.files <= parent.limits.files
    for name in ("inactivity_timeout_ms", "memory_bytes"):
        bound = getattr(parent.limits, name)
        assert not bound or 0 < getattr(made.limits, name) <= bound
    mine, theirs = Boundary(made.ownership.paths), Boundary(parent.ownership.paths)
    assert all(theirs.covers(path) for path in FILES if mine.covers(path))
    assert made.ownership.exceptions_allowed <= (parent.ownership.exceptions_allowed and parent.ownership.paths is None)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(contracts, contracts)
def test_narrowing_twice_changes_only_the_depth(child: Contract, parent: Contract):
    """What is narrow enough stays as it is."""
    once = nesting.narrowed(child, parent)
    twice = nesting.narrowed(once, parent)
    assert twice.model_copy(update={"permissions": once.permissions}) == once


def test_names_are_paths():
    """Steps of a run count from 0, those below a step from 1; a run is named after its parent and its task."""
    assert [nesting.task_id(None, 2), nesting.task_id(TaskId("2"), 0), nesting.task_id(TaskId("2.1"), 9)] == [
        "2",
        "2.1",
        "2.1.10",
    ]
    assert nesting.run_id(RunId("r1"), TaskId("2"), 1) == "r1-s2"
    assert nesting.run_id(RunId("r1-s2"), TaskId("2.1"), 2) == "r1-s2-s1n2"


def test_path_ids_are_ordered_by_number():
    """1, 2, 10; 1.2 before 1.10."""
    names = ["10", "1.10", "2", "1", "1.2", "1.2.1"]
    assert sorted(names, key=lambda name: TaskId(name).order) == ["1", "1.2", "1.2.1", "1.10", "2", "10"]


def test_a_parent_has_what_its_author_gave_to_its_children():
    """Unless the parent itself says less, which then binds them."""
    child = {"title": "c", "command": ["true"], "retries": 2, "timeout": "1h", "allowed_tools": ["run"]}
    plan = Plan.model_validate(
        {"steps": [{"title": "p", "steps": [child]}, {"title": "q", "retries": 1, "steps": [child]}]}
    )
    free, bound = (nesting.contract(plan, idx, "r", "auto") for idx in (0, 1))
    assert (free.execution.max_retries, bound.execution.max_retries) == (0, 1)  # each one's own
    nests = [nesting.Nest(RunId("r"), TaskId(str(idx)), within) for idx, within in enumerate((free, bound))]
    below = [nesting.contract(Plan.model_validate(nest.within.work.subplan), 0, "r-s0", "auto", nest) for nest in nests]
    assert [one.execution.max_retries for one in below] == [2, 1]
    assert free.execution.attempt_timeout_ms == limits.NESTED_TIMEOUT_MS  # it binds all children together
    assert free.permissions == Permissions(allowed_tools=("run",), can_spawn_children=True, max_delegation_depth=1)
