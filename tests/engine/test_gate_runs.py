"""Success means verified: checks on the workspace, then on the exact merged tree, against the base's own result."""

from __future__ import annotations

from support.workbench import Workbench, shell, write

AGREE = "test $(cat left.txt) = $(cat right.txt)"


def checks_of(bench: Workbench) -> list[tuple[str, str, bool, bool | None]]:
    """Every check of the latest run: step, where, ok, failed on base."""
    return [
        (event["task_id"], event["payload"]["where"], event["payload"]["ok"], event["payload"]["failed_on_base"])
        for event in bench.events()
        if event["type"] == "check.finished"
    ]


def test_green_alone_and_red_together_is_caught_on_the_merged_tree(bench: Workbench) -> None:
    """Both steps pass in their workspaces; the merge of the second would break the check and is refused."""
    bench.commit({"left.txt": "1\n", "right.txt": "1\n"})
    done = bench.run(
        write("left.txt", "2\n", checks=["test -e right.txt"]),
        write("right.txt", "1\n\n", checks=[AGREE]),
    )
    assert (done.code, done.reasons) == (5, ["merged", "check_failed"])
    assert ("1", "workspace", True, None) in checks_of(bench)
    assert ("1", "merged", False, False) in checks_of(bench)
    assert bench.tree(done.data["head"])["left.txt"] == "2"
    assert done.data["head"] == done.steps[0]["merge_commit"]
    assert done.steps[1]["kept_ref"]


def test_a_merged_tree_that_was_checked_already_is_not_checked_again(bench: Workbench) -> None:
    """The first step's merge is its own tree: one check; the second one's is not: two."""
    done = bench.run(
        shell("echo 1 > x.txt", owns=["x.txt"], checks=["true"]),
        shell("echo 2 > y.txt", owns=["y.txt"], checks=["true"]),
    )
    assert done.code == 0
    assert sorted(checks_of(bench)) == [
        ("0", "workspace", True, None),
        ("1", "merged", True, None),
        ("1", "workspace", True, None),
    ]


def test_a_check_that_fails_on_the_base_is_reported_as_such(bench: Workbench) -> None:
    """It blocks unless the plan says `may_fail_on_base`; one that passed on the base always blocks."""
    red = ["test", "-e", "missing.txt"]
    blocked = bench.run(write("x.txt", "x\n", checks=[red]))
    assert (blocked.code, blocked.reasons) == (5, ["check_failed"])
    assert "fails on the base commit too" in blocked.steps[0]["message"]
    assert "fails on the base commit too" in bench.call("report", "latest", "--step", "0").out
    allowed = bench.run(write("x.txt", "x\n", checks=[{"run": red, "may_fail_on_base": True}]))
    assert (allowed.code, allowed.reasons) == (0, ["merged"])
    assert checks_of(bench) == [("0", "workspace", False, True)]
    own = bench.run(
        {
            "title": "break it",
            "actions": [{"delete_file": {"path": "a.txt"}}],
            "checks": [{"run": ["test", "-e", "a.txt"], "may_fail_on_base": True}],
        }
    )
    assert (own.code, own.reasons) == (5, ["check_failed"])
    assert checks_of(bench) == [("0", "workspace", False, False)]


def test_a_criterion_is_shown_by_its_command_and_never_by_a_claim(bench: Workbench) -> None:
    """A claim of success does not help; a criterion without a command is `not verified` in the report."""
    front = (
        "---\\nstatus: done\\ncriteria:\\n - {criterion: it works, met: true, evidence: trust me}\\n---\\nAll good.\\n"
    )
    claim = f'printf -- "{front}" > "$ORCHESTRIX_REPORT_FILE"; echo 1 > x.txt'
    failed = bench.run(shell(claim, success_criteria=[{"text": "it works", "check": ["test", "-e", "other.txt"]}]))
    assert (failed.code, failed.reasons) == (5, ["criterion_failed"])
    assert "it works: **not met**" in bench.call("report", "latest", "--step", "0").out
    merged = bench.run(shell(claim, success_criteria=["it works", "nobody says"]))
    text = bench.call("report", "latest", "--step", "0").out
    assert merged.code == 0
    assert "it works: **claimed by the agent, not verified** (trust me)" in text
    assert "nobody says: **not verified**" in text


def test_an_agent_that_admits_failure_is_believed(bench: Workbench) -> None:
    """An account can make an outcome worse, never better."""
    done = bench.run(
        shell(
            'echo 1 > x.txt; printf -- "---\\nstatus: failed\\nsummary: I got stuck\\n---\\n" > $ORCHESTRIX_REPORT_FILE'
        )
    )
    assert (done.code, done.reasons) == (1, ["agent_failed"])
    assert "I got stuck" in done.steps[0]["message"]
    assert done.steps[0]["kept_ref"]


def test_what_a_check_writes_is_not_part_of_the_work(bench: Workbench) -> None:
    """The snapshot is taken before checks run, so their litter and their fixes are never merged."""
    done = bench.run(write("x.txt", "x\n", checks=["echo litter > litter.txt; echo y > x.txt"]))
    assert done.code == 0
    assert bench.tree(done.data["head"])["x.txt"] == "x"
    assert "litter.txt" not in bench.tree(done.data["head"])
