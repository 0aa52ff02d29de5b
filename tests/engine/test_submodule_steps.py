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


def worked_in(bench: Workbench, path: str) -> dict[Path, bytes]:
    """The user's submodule with a commit that nobody else has, an edit and a new file; returns all of its files."""
    inside = bench.files / path
    (inside / "lib.py").write_text("mine\n")
    bench.git("-C", path, "-c", "user.name=U", "-c", "user.email=u@b", "commit", "-qam", "mine alone")
    (inside / "lib.py").write_text("edited\n")
    (inside / "new.py").write_text("untracked\n")
    return content(inside)


def content(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def with_submodule(bench: Workbench, source: Workbench) -> None:
    bench.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source.files), "lib")
    bench.git("commit", "-qm", "Add a submodule")


@pytest.mark.parametrize("instead", ["echo plain > lib", "ln -s a.txt lib", "mkdir -p lib; echo plain > lib/inner"])
def test_landing_does_not_remove_what_the_user_has_in_a_submodule(
    bench: Workbench, library: tuple[Workbench, str, str], instead: str
) -> None:
    """The step replaces the submodule: refused with the way out, and nothing changes until the user takes it."""
    with_submodule(bench, library[0])
    step = shell(f"git rm -q lib; {instead}; git add lib", owns=["lib", "lib/**", ".gitmodules"])
    assert bench.run(step, flags=("--sandbox", "none")).code == 0
    mine = worked_in(bench, "lib")
    refused = bench.call("land", "latest", "--json")
    assert (refused.code, refused.envelope["error"]["paths"]) == (4, ["lib"])
    assert "git submodule deinit lib" in refused.envelope["error"]["hint"]
    assert content(bench.files / "lib") == mine
    bench.git("submodule", "--quiet", "deinit", "--force", "lib")
    assert bench.call("land", "latest").code == 0
    assert bench.git("status", "--porcelain") == ""


@pytest.mark.parametrize("recurse", ["true", "false"])
@pytest.mark.parametrize("step", ["moves", "removes"])
def test_landing_leaves_the_directory_of_a_submodule_alone(
    bench: Workbench, library: tuple[Workbench, str, str], step: str, recurse: str
) -> None:
    """As `git merge --ff-only` does, whatever `submodule.recurse` says: `git submodule update` is the user's."""
    source, older, _ = library
    with_submodule(bench, source)
    script = "git rm -q lib" if step == "removes" else cloned(source.files, "lib", older)
    assert bench.run(shell(script, owns=["lib", ".gitmodules"]), flags=("--sandbox", "none")).code == 0
    mine = worked_in(bench, "lib")
    bench.git("config", "submodule.recurse", recurse)
    for verb in ("land", "undo", "land"):
        assert bench.call(verb).code == 0
        assert content(bench.files / "lib") == mine


def test_undo_does_not_remove_what_the_user_has_in_a_submodule(
    bench: Workbench, library: tuple[Workbench, str, str]
) -> None:
    """A file became a submodule, and the user went to work there."""
    source, _, newer = library
    bench.commit({"lib": "a file\n"})
    step = shell(cloned(source.files, "lib", newer), owns=["lib", ".gitmodules"])
    assert bench.run(step, flags=("--sandbox", "none", "--land")).code == 0
    bench.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    mine = worked_in(bench, "lib")
    refused = bench.call("undo", "--json")
    assert (refused.code, refused.envelope["error"]["paths"]) == (4, ["lib"])
    assert content(bench.files / "lib") == mine
    bench.git("submodule", "--quiet", "deinit", "--force", "lib")
    assert bench.call("undo").code == 0
    assert (bench.files / "lib").read_text() == "a file\n"


COMMIT = f"{ME} commit -qm mine"
ENDINGS = {
    "staged": "&& git update-index --index-version 4",
    "committed": f"&& {COMMIT}",
    "no index": f"&& {COMMIT} && rm $(git rev-parse --git-dir)/index",
    "split index": f"&& {COMMIT} && git update-index --split-index",
}


@pytest.fixture
def project(bench: Workbench, library: tuple[Workbench, str, str]) -> Workbench:
    """A repository with the library as a submodule, at its older commit."""
    source, older, _ = library
    for field, value in (("path", "sub"), ("url", str(source.files))):
        bench.git("config", "-f", ".gitmodules", f"submodule.sub.{field}", value)
    bench.git("update-index", "--add", "--cacheinfo", f"160000,{older},sub")
    bench.git("add", ".gitmodules")
    bench.git("commit", "-qm", "Add the library")
    (bench.files / "sub").mkdir()
    return bench


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_submodule_that_is_not_checked_out_is_moved(
    project: Workbench, library: tuple[Workbench, str, str], kind: str, ending: str
) -> None:
    """Staged, committed, and with the commit alone to tell: an empty directory does not say which commit it stands for."""
    # An overlay of an unprivileged user cannot rename a directory of the start point: there the same is done without.
    by_hand = (
        "git rm -q --cached sub && rmdir sub && mkdir moved && git config -f .gitmodules submodule.sub.path moved"
        f" && git add .gitmodules && git update-index --add --cacheinfo 160000,{library[1]},moved"
    )
    moved = f"{{ git mv sub moved || {{ {by_hand}; }}; }}"
    step = shell(f"{moved} && echo more >> a.txt {ENDINGS[ending]}", owns=["**"])
    done = project.run(step, flags=("--workspace", kind, "--sandbox", "bwrap"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert gitlink(project, done.data["head"], "moved") == f"160000 commit {library[1]} moved"
    assert gitlink(project, done.data["head"], "sub") == ""
    assert done.steps[0]["changed_paths"] == [".gitmodules", "a.txt", "moved", "sub"]


@pytest.mark.parametrize("more", ["true", "echo more >> a.txt; git add a.txt"], ids=["alone", "beside"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_gitlink_whose_commit_nobody_can_show_fails_its_step(
    project: Workbench, library: tuple[Workbench, str, str], kind: str, more: str, ending: str
) -> None:
    """With its path, and with the work kept; it is never dropped, alone or beside other work."""
    newer = library[2]
    script = f"{more}; git update-index --cacheinfo 160000,{newer},sub {ENDINGS[ending]}"
    done = project.run(shell(script, owns=["**"]), flags=("--workspace", kind, "--sandbox", "bwrap"))
    assert (done.code, done.reasons) == (1, ["content_refused"]), done.out
    assert f"submodule sub: commit {newer[:12]} cannot be shown to be reachable" in done.steps[0]["message"]
    kept = next(event["payload"]["ref"] for event in project.events() if event["type"] == "work.kept")
    assert gitlink(project, kept, "sub") == f"160000 commit {newer} sub"


def test_an_index_that_cannot_be_read_is_named(project: Workbench, library: tuple[Workbench, str, str]) -> None:
    """What is only staged there is left out, and said to be."""
    script = f"git update-index --cacheinfo 160000,{library[2]},sub && git update-index --split-index; echo 1 > new.txt"
    done = project.run(shell(script, owns=["**"]))
    assert (done.code, done.steps[0]["changed_paths"]) == (0, ["new.txt"]), done.out
    assert "index cannot be read" in project.call("report", "latest", "--step", "0").out


@pytest.mark.parametrize("how", ["git rm -q sub", "git rm -q --cached sub", "rmdir sub"])
def test_a_submodule_goes(project: Workbench, kind: str, how: str) -> None:
    """From the index, from the files, and from both."""
    done = project.run(shell(how, owns=["**"]), flags=("--workspace", kind, "--sandbox", "bwrap"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert gitlink(project, done.data["head"], "sub") == ""


def test_a_gitlink_that_the_agent_took_back_is_none(
    project: Workbench, library: tuple[Workbench, str, str], kind: str
) -> None:
    """On another branch, or reset: the commits are kept, and the step is what its index and its files say."""
    script = (
        f"git checkout -q -b aside && git update-index --add --cacheinfo 160000,{library[2]},new &&"
        f" git update-index --cacheinfo 160000,{library[2]},sub && {COMMIT} && git checkout -q - && echo more >> a.txt"
    )
    done = project.run(shell(script, owns=["**"]), flags=("--workspace", kind, "--sandbox", "bwrap"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert done.steps[0]["changed_paths"] == ["a.txt"]


def test_files_in_the_place_of_a_gitlink_decide(
    project: Workbench, library: tuple[Workbench, str, str], kind: str
) -> None:
    """A file, a folder of files and a link above: what the index still says of a submodule there is over."""
    script = (
        f"for path in sub new deep/er; do git update-index --add --cacheinfo 160000,{library[2]},$path; done;"
        "echo file > sub/file; mkdir -p new && echo file > new/file; mkdir -p real/er && echo file > real/er/file; ln -s real deep"
    )
    done = project.run(shell(script, owns=["**"]), flags=("--workspace", kind, "--sandbox", "bwrap"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert done.steps[0]["changed_paths"] == ["deep", "new/file", "real/er/file", "sub", "sub/file"]


def test_a_gitlink_is_taken_when_the_repository_there_shows_its_commit(
    project: Workbench, library: tuple[Workbench, str, str], kind: str
) -> None:
    """The submodule stands where it stood, and its remote has the commit that the index names."""
    source, older, newer = library
    script = f"{cloned(source.files, 'sub', older)} && git update-index --cacheinfo 160000,{newer},sub"
    done = project.run(shell(script, owns=["**"]), flags=("--workspace", kind, "--sandbox", "none"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert gitlink(project, done.data["head"], "sub") == f"160000 commit {newer} sub"
