"""Ownership: changed paths lie within `owns`, whatever way they were changed."""

from __future__ import annotations

from textwrap import dedent

import pytest
from support.workbench import Workbench, shell

FRONT = """\
    ---
    ownership_exceptions:
      - path: README.md
        reason: the new module must be named there
    ---
    Done.
    """


def account(text: str) -> str:
    """A shell command that writes this report."""
    return f"cat > \"$ORCHESTRIX_REPORT_FILE\" <<'END'\n{dedent(text)}END\n"


def test_writing_outside_is_a_violation_with_the_list_and_the_work_kept(bench: Workbench) -> None:
    """Exit 5: every kind of change outside counts, the one inside does not; nothing is merged."""
    bench.commit({"gone.txt": "gone\n", "moved.txt": "moved\n" * 9, "tool.sh": "#!/bin/sh\n"})
    done = bench.run(
        shell(
            "echo inside > src/new.py; echo outside > other.txt; rm gone.txt; mv moved.txt src/moved.txt;"
            " chmod +x tool.sh; ln -sf src README.md; mkdir -p 'odd dir'; echo x > 'odd dir/é\nnew'",
            owns=["src/**"],
            retries=0,
        )
    )
    step = done.steps[0]
    assert (done.code, done.reasons) == (5, ["ownership_violation"])
    outside = ["README.md", "gone.txt", "moved.txt", "odd dir/é\nnew", "other.txt", "tool.sh"]
    failed = next(event for event in bench.events() if event["type"] == "agent.subagent_failed")
    assert failed["payload"]["paths"] == outside
    assert step["changed_paths"] == sorted([*outside, "src/moved.txt", "src/new.py"])
    assert done.data["head"] == done.data["base"]
    assert bench.tree(step["kept_ref"])["other.txt"] == "outside"
    assert "other.txt" in bench.call("report", "latest", "--step", "0").out


@pytest.mark.parametrize(
    ("script", "outside"),
    [
        ("rm -r src && ln -s ../.. src && echo x > new.txt", ["src", "src/lib.py"]),
        ("mkdir -p sub && ln -s / sub/root && ln -s ../README.md sub/up && echo y > sub/up", ["README.md"]),
        ("mkdir sub; mv a.txt sub/a.txt", ["a.txt"]),
        ("echo '*.txt merge=ours' > .gitattributes", [".gitattributes"]),
    ],
)
def test_links_and_moves_are_no_way_around(bench: Workbench, script: str, outside: list[str]) -> None:
    """What counts is the path that changed in the tree, not the name that it was written through."""
    done = bench.run(shell(script, owns=["sub/**", "new.txt"]))
    failed = next(event for event in bench.events() if event["type"] == "agent.subagent_failed")
    assert (done.code, done.reasons) == (5, ["ownership_violation"])
    assert failed["payload"]["paths"] == outside


def test_an_exception_needs_the_plan_and_a_reason_in_the_report(bench: Workbench) -> None:
    """Allowed by the plan and claimed with a reason: merged, recorded in the event and in the report."""
    script = "echo v > src/new.py; echo more >> README.md; "
    refused = bench.run(shell(script + account(FRONT), owns=["src/**"]))
    assert (refused.code, refused.reasons) == (5, ["ownership_violation"])
    unclaimed = bench.run(shell(script, owns=["src/**"]), ownership_exceptions=True)
    assert (unclaimed.code, unclaimed.reasons) == (5, ["ownership_violation"])
    empty = FRONT.replace("the new module must be named there", "'  '")
    unreasoned = bench.run(shell(script + account(empty), owns=["src/**"]), ownership_exceptions=True)
    assert (unreasoned.code, unreasoned.reasons) == (5, ["ownership_violation"])
    granted = bench.run(shell(script + account(FRONT), owns=["src/**"]), ownership_exceptions=True)
    assert (granted.code, granted.reasons) == (0, ["merged"])
    events = [event["payload"] for event in bench.events() if event["type"] == "ownership.exception_granted"]
    assert [(event["path"], event["reason"]) for event in events] == [
        ("README.md", "the new module must be named there")
    ]
    assert "the new module must be named there" in bench.call("report", "latest", "--step", "0").out
    assert bench.tree(granted.data["head"])["README.md"] == "# Sample\nmore"


def test_an_exception_covers_only_the_path_that_it_names(bench: Workbench) -> None:
    """One claimed path does not open the door for another, nor does a pattern or a directory."""
    front = FRONT.replace("path: README.md", "path: '**'")
    for text in (FRONT, front, front.replace("**", ".")):
        done = bench.run(
            shell("echo 1 > README.md; echo 1 > a.txt;" + account(text), owns=["src/**"]), ownership_exceptions=True
        )
        assert (done.code, done.reasons) == (5, ["ownership_violation"])
        assert "a.txt" in done.steps[0]["message"]


def test_the_report_itself_needs_no_ownership_and_is_not_committed(bench: Workbench) -> None:
    """A step that owns one file and writes its report changes one path."""
    done = bench.run(shell("echo 1 > x.txt;" + account("I did it.\n"), owns=["x.txt"]))
    assert done.code == 0
    assert done.steps[0]["changed_paths"] == ["x.txt"]
    assert ".orchestrix/step-0-result.md" not in bench.tree(done.data["head"])
    assert "I did it." in bench.call("report", "latest", "--step", "0").out
