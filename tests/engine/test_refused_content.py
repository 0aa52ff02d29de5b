"""What one workspace holds can fail its own step and nothing else: the step beside it is merged, and no work is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.workbench import Workbench, shell, write

HONEST = write("honest.txt", "honest\n")
KINDS = ("overlay", "checkout", "sparse")
# Script, the file that must be kept, and a word that the reason must hold.
CONTENT = {
    "utf-16": ("echo '* working-tree-encoding=UTF-16' > .gitattributes; echo work > work.txt", "work.txt", "UTF-16"),
    "no-such-encoding": (
        "echo '* working-tree-encoding=nonsense' > .gitattributes; echo work > work.txt",
        "work.txt",
        "nonsense",
    ),
    "attributes-folder": ("mkdir .gitattributes; echo work > .gitattributes/work.txt", "", "gitattributesBlob"),
    "large-attributes": (
        "yes '*.x text' | head -c 120000000 > .gitattributes; echo work > work.txt",
        "work.txt",
        "gitattributesLarge",
    ),
    "large-ignore": ("yes 'a.x' | head -c 2000000 > .gitignore; echo work > work.txt", "work.txt", "gitignoreLarge"),
    "deep": (
        'echo work > work.txt; python3 -c \'import os\nfor _ in range(1500): os.mkdir("d"); os.chdir("d")\nopen("f", "w")\'',
        "work.txt",
        "pathDepth",
    ),
    "modules-url": (
        "printf '[submodule \"a\"]\\n\\tpath = a\\n\\turl = --upload-pack=x\\n' > .gitmodules; echo work > work.txt",
        "work.txt",
        "gitmodulesUrl",
    ),
    "modules-name": (
        "printf '[submodule \"../a\"]\\n\\tpath = a\\n\\turl = x\\n' > .gitmodules; echo work > work.txt",
        "work.txt",
        "gitmodulesName",
    ),
    "modules-link": ("ln -s a.txt .gitmodules; echo work > work.txt", "work.txt", "gitmodulesSymlink"),
    "case": ("mkdir src/.GIT; echo work > src/.GIT/work.txt", "src/refused-.GIT/work.txt", "hasDotgit"),
    "ntfs": ("echo work > git~1", "refused-git~1", "hasDotgit"),
    "hfs": ("d=$(printf '.g\\342\\200\\214it'); mkdir $d; echo work > $d/work.txt", "", "hasDotgit"),
}
# What git has no objection to, whatever it looks like.
HARMLESS = {
    "filter": "echo '* filter=nowhere' > .gitattributes; echo work > work.txt",
    "merge": "echo '* merge=nowhere' > .gitattributes; echo work > work.txt",
    "words": "printf '\\377\\376 \\000 nonsense [attr' > .gitattributes; echo work > work.txt",
    "ignore": "printf '[\\n\\\\\\n!\\n**/**/[a-\\n' > .gitignore; echo work > work.txt",
    "names": "echo work > work.txt; echo x > .gitfoo; mkdir .github; echo x > .github/x; echo x > 'a~1'",
    "pipe": "mkfifo pipe; echo work > work.txt",
    "closed": "echo work > work.txt; mkdir shut; echo x > shut/x; chmod 000 shut work.txt",
}


def of(bench: Workbench, kind: str) -> dict[str, object]:
    return next(event["payload"] for event in bench.events() if event["type"] == kind)


@pytest.mark.parametrize("name", CONTENT)
def test_content_that_git_refuses_fails_its_step_alone(bench: Workbench, name: str) -> None:
    """The reason names the rule, the work is kept in a form that any git takes, the other step is merged."""
    bench.commit({"lines.txt": "one\n", "old/.gitattributes": "*.txt text\n"})
    script, kept, word = CONTENT[name]
    kind = KINDS[sorted(CONTENT).index(name) % 2]
    done = bench.run(shell(script, owns=["**"]), HONEST, overlap="allow", flags=("--workspace", kind))
    assert (done.code, done.reasons) == (1, ["content_refused", "merged"]), done.out
    assert word in done.steps[0]["message"]
    ref = str(of(bench, "work.kept")["ref"])
    assert "work" in bench.tree(ref).get(kept, "work"), bench.tree(ref).keys()
    assert any("work.txt" in path or kept == path for path in bench.tree(ref))
    assert bench.git("fsck", "--strict") == ""
    assert bench.call("resume", "latest").code == 1


@pytest.mark.parametrize("name", HARMLESS)
def test_odd_content_that_git_takes_is_merged(bench: Workbench, name: str) -> None:
    """An undefined filter or driver, rules that make no sense, special and closed files: no reason to fail."""
    kind = KINDS[sorted(HARMLESS).index(name) % 2]
    done = bench.run(shell(HARMLESS[name], owns=["**"]), HONEST, overlap="allow", flags=("--workspace", kind))
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert bench.tree(done.data["head"])["work.txt"] == "work"


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_that_takes_too_long_fails_its_step_alone(
    bench: Workbench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file costs its step nothing to write and git much to read; the files stay in a folder that is named."""
    monkeypatch.setenv("ORCHESTRIX_GIT_TIMEOUT", "4s")
    script = "echo work > work.txt; for n in 1 2 3 4 5 6; do truncate -s 1900M huge/$n; done"
    done = bench.run(shell(f"mkdir huge; {script}", owns=["huge/**", "work.txt"]), HONEST, flags=("--workspace", kind))
    assert (done.code, done.reasons) == (1, ["limit_exceeded", "merged"]), done.out
    folder = Path(str(of(bench, "workspace.kept")["path"]))
    assert str(folder) in done.steps[0]["message"]
    assert (folder / "work.txt").read_text() == "work\n"
    bench.call("clean")
    assert (folder / "work.txt").exists()
    assert "Files kept in" in bench.call("report", "latest", "--step", "0").out
