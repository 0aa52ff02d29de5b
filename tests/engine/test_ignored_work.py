"""What the agent tracked is taken although a rule ignores it; what is left out is counted and named."""

from __future__ import annotations

from typing import Any

import pytest
from support.workbench import Workbench, shell, write

COMMIT = "git -c user.name=A -c user.email=a@b commit -qm mine"
MOVES = {
    "committed": f"mkdir lib && git mv src/tags lib/tags && git mv .env conf.env && {COMMIT}",
    "staged": "mkdir lib && git mv src/tags lib/tags && git mv .env conf.env",
    "moved": "mkdir lib && mv src/tags lib/tags && mv .env conf.env",
}


@pytest.fixture(params=["overlay", "checkout", "sparse"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def project(bench: Workbench) -> Workbench:
    """Fixtures that an ignore rule names, and that are tracked all the same."""
    bench.commit({"src/tags": "fixture\n", ".env": "A=1\n"})
    bench.commit({".gitignore": "tags\n*.env\n*.log\nnode_modules/\n"})
    return bench


def taken(bench: Workbench) -> dict[str, Any]:
    return [event["payload"] for event in bench.events() if event["type"] == "snapshot.taken"][-1]


@pytest.mark.parametrize("how", MOVES)
@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_tracked_file_that_moves_to_an_ignored_name_is_moved(
    project: Workbench, kind: str, how: str, sandbox: str
) -> None:
    """By git with a commit, by git without one, and by the shell alone."""
    flags = ("--workspace", kind, "--sandbox", sandbox)
    done = project.run(shell(MOVES[how], owns=["**"], title="move"), flags=flags)
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    tree = project.tree(done.data["head"])
    assert (tree["lib/tags"], tree["conf.env"]) == ("fixture", "A=1")
    assert not {"src/tags", ".env"} & tree.keys()
    assert taken(project)["ignored_total"] == 0


def test_files_that_were_added_by_force_are_work_and_the_others_are_counted(project: Workbench, kind: str) -> None:
    """A folder of thousands is one; what the harness brought itself, and its own files, are none."""
    (project.files / "local.env").write_text("SECRET=1\n")
    script = (
        "echo fixture > new.log && git add -f new.log && echo junk > debug.log && echo x > src/a.log;"
        "mkdir -p node_modules/deep/er && for n in 1 2 3; do echo $n > node_modules/deep/er/$n; done; echo work > work.txt"
    )
    flags = ("--workspace", kind)
    (project.files / ".orchestrix").mkdir(exist_ok=True)
    (project.files / ".orchestrix" / "config.toml").write_text('[workspace]\ncopy = ["local.env"]\n')
    done = project.run(
        shell(script, owns=["**"], title="junk"), write("honest.txt", "x\n"), overlap="allow", flags=flags
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    tree = project.tree(done.data["head"])
    assert tree["new.log"] == "fixture"
    assert not {"debug.log", "local.env", "src/a.log"} & tree.keys()
    first = [
        event["payload"] for event in project.events() if event["type"] == "snapshot.taken" and event["task_id"] == "0"
    ]
    assert first[0]["ignored"] == ["debug.log", "node_modules/", "src/a.log"]
    assert first[0]["ignored_total"] == 3
    report = project.call("report", "latest", "--step", "0").out
    assert "because ignore rules name them (3): debug.log, node\\_modules/, src/a.log" in report


def test_an_ignored_copy_of_something_that_stays_is_not_work(project: Workbench, kind: str) -> None:
    """Only content that went is looked for, and an empty file only under its own name."""
    script = "cp a.txt a.log; : > empty.log; rm README.md"
    done = project.run(shell(script, owns=["**"]), flags=("--workspace", kind))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert taken(project)["ignored"] == ["a.log", "empty.log"]
