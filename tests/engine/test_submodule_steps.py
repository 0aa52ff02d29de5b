"""Steps that add and move submodules, and steps that stand on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.workbench import Workbench, shell

ME = "git -c user.name=A -c user.email=a@b -c protocol.file.allow=always"


@pytest.fixture(params=["overlay", "checkout", "sparse"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def library(tmp_path: Path) -> tuple[Workbench, str, str]:
    """Another repository, and two commits of it."""
    made = Workbench(tmp_path / "other")
    return made, made.commit({"lib.py": "1\n"}), made.commit({"lib.py": "2\n"})


def gitlink(bench: Workbench, revision: str, path: str) -> str:
    return bench.git("ls-tree", revision, "--", path).replace("\t", " ")


def cloned(source: Path, path: str, commit: str) -> str:
    """What `git submodule add` does, but for the settings of the repository."""
    return (
        f"rm -rf {path}; {ME} clone -q {source} {path} && git -C {path} checkout -q {commit} &&"
        f" git config -f .gitmodules submodule.{path}.path {path} &&"
        f" git config -f .gitmodules submodule.{path}.url {source}"
    )


def test_a_step_adds_a_submodule_another_moves_it_and_a_third_leaves_it_alone(
    bench: Workbench, library: tuple[Workbench, str, str], kind: str
) -> None:
    """The gitlink is where the last step that touched it put it; a second run of the same plan ends alike."""
    source, older, newer = library
    steps = (
        shell(cloned(source.files, "lib", older), owns=["lib", ".gitmodules"], title="add"),
        shell(cloned(source.files, "lib", newer), owns=["lib", ".gitmodules"], needs=[0], title="move"),
        shell("echo more >> a.txt", owns=["a.txt"], needs=[1], title="leave"),
    )
    for _ in range(2):
        done = bench.run(*steps, flags=("--workspace", kind, "--sandbox", "none"))
        assert (done.code, done.reasons) == (0, ["merged"] * 3), done.out
        assert gitlink(bench, done.data["head"], "lib") == f"160000 commit {newer} lib"


def test_a_commit_that_only_the_workspace_has_fails_its_step_alone(
    bench: Workbench, library: tuple[Workbench, str, str], kind: str
) -> None:
    """Its files are kept, the reason says what to do, and the other step is merged."""
    source, _, newer = library
    script = f"{cloned(source.files, 'lib', newer)} && cd lib && echo 3 > lib.py && {ME} commit -qam mine"
    done = bench.run(
        shell(script, owns=["lib/**", "lib", ".gitmodules"], title="ahead"),
        shell("echo more >> a.txt", owns=["a.txt"], title="honest"),
        flags=("--workspace", kind, "--sandbox", "none"),
    )
    assert (done.code, done.reasons) == (1, ["content_refused", "merged"]), done.out
    assert "push it first" in done.steps[0]["message"]
    kept = next(event["payload"]["ref"] for event in bench.events() if event["type"] == "work.kept")
    assert bench.git("show", f"{kept}:lib/lib.py") == "3"


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("workspace", ["overlay", "checkout"])
def test_git_submodule_add_is_merged(
    bench: Workbench, library: tuple[Workbench, str, str], workspace: str, sandbox: str
) -> None:
    """The command itself, which also writes git's settings: no tampering, in a first run as in a second one."""
    source, _, newer = library
    before = bench.git("config", "--list", "--local")
    step = shell(f"{ME} submodule add -q {source.files} lib", owns=["lib", ".gitmodules"])
    for _ in range(2):
        done = bench.run(step, flags=("--workspace", workspace, "--sandbox", sandbox))
        assert (done.code, done.reasons) == (0, ["merged"]), done.out
        assert gitlink(bench, done.data["head"], "lib") == f"160000 commit {newer} lib"
        assert "path = lib" in bench.git("show", f"{done.data['head']}:.gitmodules")
    assert bench.git("config", "--list", "--local") == before
