"""Each kind of name refuses what the kind does not allow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.model.ids import (
    CommitId,
    RefName,
    RunId,
    TaskId,
    TreeId,
    integration_branch,
    keep_ref,
    record_ref,
    sub_agent_id,
    undone_ref,
    work_branch,
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((RunId, value) for value in ("", "-x", "A", "a/b", "a.b", "a\n", "é", "a" * 201)),
        *((CommitId, value) for value in ("", "a" * 39, "a" * 41, "A" * 40, "g" * 40, "a" * 40 + "\n")),
        *((TreeId, value) for value in ("HEAD", "0x" + "a" * 38)),
        *((TaskId, value) for value in ("", "a", "1.", ".1", "1..2", "-1", "1.2.3.4.5.6.7.8.9.10", "1234567")),
    ],
)
def test_a_name_of_the_wrong_kind_is_refused(kind, value):
    """The error names the kind and what it looks like."""
    with pytest.raises(UsageError, match=f"is not a {kind.kind}") as caught:
        kind(value)
    assert caught.value.hint.startswith(f"a {kind.kind} matches ")


@pytest.mark.parametrize(
    "value",
    [
        "main",
        "refs/heads/a..b",
        "refs/heads/a b",
        "refs/heads/a~1",
        "refs/heads/a^",
        "refs/heads/a:b",
        "refs/heads/a?",
        "refs/heads/*",
        "refs/heads/[a",
        "refs/heads/a\\b",
        "refs/heads/a@{1}",
        "refs/heads//a",
        "refs/heads/.a",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/a.",
        "refs/heads/",
        "refs/heads/a\x00",
        "refs/heads/a\n",
    ],
)
def test_what_git_would_not_take_as_a_full_ref_is_refused(value):
    """Short names are ambiguous, and git's forbidden characters never reach it."""
    with pytest.raises(UsageError, match="is not a full ref name"):
        RefName(value)


def test_a_branch_is_named_shortly_or_in_full():
    """Both spellings give one ref."""
    assert RefName.branch("topic/a") == RefName.branch("refs/heads/topic/a") == "refs/heads/topic/a"
    assert RefName.branch("topic/a").short == "topic/a"


@settings(derandomize=True, deadline=None)
@given(st.lists(st.lists(st.integers(0, 999), min_size=1, max_size=4), max_size=8))
def test_task_ids_are_ordered_by_number_in_each_part(parts):
    """2.10 comes after 2.9, never before 2.2 as text would have it."""
    tasks = [TaskId(".".join(map(str, numbers))) for numbers in parts]
    assert [task.order for task in sorted(tasks, key=lambda task: task.order)] == sorted(map(tuple, parts))


def test_the_refs_of_a_run_have_one_place_each():
    """Names that other tools may rely on."""
    run, task = RunId("r1"), TaskId("2.10")
    assert work_branch(run, task) == "refs/heads/orchestrix/r1/2.10/work"
    assert integration_branch(run) == "refs/heads/orchestrix/r1/integration"
    assert keep_ref(run, task, "attempt-1") == "refs/orchestrix/keep/r1/2.10/attempt-1"
    assert undone_ref(run, CommitId("a" * 40)) == "refs/orchestrix/keep/r1/undone/aaaaaaaaaaaa"
    assert record_ref(run) == "refs/orchestrix/runs/r1"
    assert sub_agent_id(run, task) == "r1/2.10"
