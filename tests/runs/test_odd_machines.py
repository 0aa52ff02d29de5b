"""The same commands give the same trees, exit codes and JSON, whatever a user's environment and git configuration say."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.checker import check
from support.workbench import ROOT, shell, write

_PLAN = {
    "version": 1,
    "goal": "Größe 日本",
    "overlap": "allow",
    "steps": [
        shell("printf '1\\n2\\n3\\n4\\n5\\nsix\\n' > lines.txt", owns=["lines.txt"], checks=["grep -q six lines.txt"]),
        write("naïve/日本 $x.txt", "x\n", title="Größe"),
        shell("mv old.txt new.txt; echo mine >> new.txt", owns=["old.txt", "new.txt"]),
        shell("printf 'one\\n2\\n3\\n4\\n5\\n6\\n' > lines.txt; chmod +x run.sh", owns=["lines.txt", "run.sh"]),
        shell("echo clash > lines.txt", owns=["lines.txt"]),
        shell("echo work > never.txt; exit 1", owns=["never.txt"]),
    ],
}
_COMMANDS = (
    "init --json",
    "validate {plan} --json",
    "run {plan} --run-id sample --json --sandbox none",
    "status sample --json",
    "list --json",
    "report sample --json",
    "report sample --step 4",
    "diff sample",
    "show sample 2 --json",
    "audit sample --json",
    "land sample --partial --json",
    "clean --json",
    "status nowhere --json",
    "run /nowhere.yaml --json",
)
# What no two runs have in common.
_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z?(?:[+-]\d\d:?\d\d)?|\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b|\b\d+(?:\.\d+)? ?m?s\b"
)
_NUMBERS = re.compile(r'("?\w*(?:_ms|_bytes|_kb|seconds|memory|cpu)\w*"?:) [\d.]+')

_GIT_CONFIG = """
[user]
    name = Ada
    email = ada@example.org
    useConfigOnly = true
    signingKey = nobody
[core]
    hooksPath = {home}/hooks
    autocrlf = input
    quotePath = false
    pager = exit 9
    editor = exit 9
    fsmonitor = {home}/hooks/fsmonitor
    untrackedCache = true
    preloadIndex = true
    excludesFile = {home}/ignored
    attributesFile = {home}/attributes
    logAllRefUpdates = always
    abbrev = 5
    precomposeUnicode = true
    splitIndex = true
    commentChar = ";"
    safecrlf = true
    checkStat = minimal
    compression = 0
    fsync = all
[commit]
    gpgSign = true
    template = {home}/template
    verbose = 2
    cleanup = scissors
    status = false
[tag]
    gpgSign = true
    forceSignAnnotated = true
[gpg]
    program = false
[diff]
    external = false
    noprefix = true
    mnemonicPrefix = true
    renames = copies
    algorithm = patience
    context = 0
    submodule = log
    orderFile = {home}/template
    wsErrorHighlight = all
    colorMoved = zebra
    relative = true
    interHunkContext = 20
    ignoreSubmodules = all
[color]
    ui = always
[init]
    defaultBranch = trunk
    templateDir = {home}/nowhere
    defaultRefFormat = files
[merge]
    conflictStyle = zdiff3
    renames = false
    ff = false
    directoryRenames = true
    verbosity = 5
    log = true
    autoStash = true
    default = broken
[merge "broken"]
    driver = false
[log]
    showSignature = true
    decorate = full
    date = relative
    follow = true
    mailmap = false
    showRoot = false
    abbrevCommit = true
[status]
    short = true
    branch = true
    showUntrackedFiles = no
    relativePaths = false
    renames = false
    submoduleSummary = true
[format]
    pretty = %H nothing else
[fetch]
    prune = true
    fsckObjects = true
    writeCommitGraph = true
    recurseSubmodules = true
[transfer]
    fsckObjects = true
    hideRefs = refs/heads/orchestrix
[gc]
    auto = 1
    autoDetach = true
    pruneExpire = now
    reflogExpire = now
[maintenance]
    auto = true
[pull]
    rebase = true
[push]
    default = current
[rebase]
    autoStash = true
[rerere]
    enabled = true
    autoUpdate = true
[index]
    version = 4
    threads = 4
    sparse = true
    skipHash = true
[feature]
    manyFiles = true
    experimental = true
[pack]
    threads = 1
    useSparse = false
    writeBitmapLookupTable = true
[worktree]
    guessRemote = true
    useRelativePaths = true
[checkout]
    defaultRemote = nowhere
    guess = false
    workers = 4
[branch]
    autoSetupMerge = always
    autoSetupRebase = always
    sort = -committerdate
[apply]
    whitespace = fix
    ignoreWhitespace = change
[advice]
    detachedHead = true
[column]
    ui = always
[grep]
    fallbackToNoIndex = true
[help]
    autoCorrect = immediate
[interactive]
    singleKey = true
[alias]
    status = !false
    st = !false
    merge-tree = !false
[safe]
    bareRepository = all
[trailer]
    ifexists = replace
[notes]
    rewriteRef = refs/notes/*
[push]
    gpgSign = if-asked
[receive]
    denyCurrentBranch = refuse
    fsckObjects = true
[uploadpack]
    hideRefs = refs/heads
[extensions]
    worktreeConfig = false
[trace2]
    normalTarget = {home}/trace
"""


def _home(root: Path, *, odd: bool) -> Path:
    home = root / "home"
    (home / "hooks").mkdir(parents=True)
    config = _GIT_CONFIG if odd else "[user]\nname = Ada\nemail = ada@example.org\n"
    (home / ".gitconfig").write_text(config.replace("{home}", str(home)))
    for name in (
        "pre-commit",
        "commit-msg",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "fsmonitor",
    ):
        hook = home / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> '{home}/ran'\nexit 1\n")
        hook.chmod(0o755)
    (home / "template").write_text("A template that nobody filled in\n")
    (home / "ignored").write_text("*.swp\n")
    (home / "attributes").write_text("*.py diff=python\n")
    return home


def _repository(root: Path) -> Path:
    """Made with no configuration at all: the repository is the same, the user's machine is not."""
    repo = root / "repo"
    repo.mkdir()
    (repo / "lines.txt").write_text("1\n2\n3\n4\n5\n6\n")
    (repo / "old.txt").write_text("".join(f"line {number}\n" for number in range(30)))
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o644)
    (repo / "lines.txt").chmod(0o644)
    (repo / "old.txt").chmod(0o644)
    env = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _PERSON.items()},
    }
    for argv in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *argv], cwd=repo, env=env, check=True)
    return repo


_PERSON = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": "1700000000 +0000"}


def _sample(root: Path, env: dict[str, str], *, umask: int = 0o022, odd_git: bool = False) -> dict[str, Any]:
    """What the commands answered, without what no two runs have in common, and the trees that they made."""
    home, repo = _home(root, odd=odd_git), _repository(root)
    (root / "plan.json").write_text(json.dumps(_PLAN))
    around = {"PATH": os.environ["PATH"], "HOME": str(home), "SOURCE_DATE_EPOCH": "1700000000"}
    around |= {"PYTHONPATH": str(ROOT), "GIT_CONFIG_NOSYSTEM": "1", **env}
    said = {}
    for command in _COMMANDS:
        argv = [sys.executable, "-m", "harness", *(command.format(plan=root / "plan.json").split())]
        done = subprocess.run(argv, cwd=repo, env=around, capture_output=True, check=False, umask=umask, timeout=120)
        complaints = [word for word in (b"Traceback", b"Exception ignored", b"Warning:") if word in done.stderr]
        assert complaints == [], done.stderr.decode()
        said[command] = (done.returncode, _stable(done.stdout.decode(), root))
    assert check(repo) == []
    assert not (home / "ran").exists(), (home / "ran").read_text()
    plain = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for name in ("main", "orchestrix/sample/integration"):
        tree = subprocess.run(
            ["git", "rev-parse", f"{name}^{{tree}}"], cwd=repo, env=plain, capture_output=True, check=True
        )
        said[name] = (0, tree.stdout.decode())
    left = subprocess.run(["git", "status", "--porcelain"], cwd=repo, env=plain, capture_output=True, check=True)
    said["checkout"] = (0, left.stdout.decode())
    return said


def _stable(text: str, root: Path) -> str:
    text = text.replace(str(root), "ROOT")
    with contextlib.suppress(ValueError):
        text = json.dumps(json.loads(text), sort_keys=True, indent=1)
    return _VOLATILE.sub("~", _NUMBERS.sub(r"\1 0", text))


def _compare(found: dict[str, Any], usual: dict[str, Any]) -> None:
    for name, answer in usual.items():
        assert found[name] == answer, name


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The sample where only PATH and HOME are set."""
    return _sample(tmp_path_factory.mktemp("usual"), {})


def test_the_sample_shows_what_it_should(usual: dict[str, Any]) -> None:
    """Merged steps, a conflict and a failure: a comparison with nothing would prove nothing."""
    codes = [code for code, _ in list(usual.values())]
    assert codes == [0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0]
    reasons = [step["close_reason"] for step in json.loads(usual["status sample --json"][1])["data"]["steps"]]
    assert reasons == ["merged", "merged", "merged", "merged", "merge_conflict", "agent_failed"]


_ODD = {
    "optimised": {"PYTHONOPTIMIZE": "2", "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "1", "PYTHONNOUSERSITE": "1"},
    "strict": {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"},
    "ours": {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "nonsense", "LANGUAGE": "de"},
    "ascii": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "TZ": "nonsense/27"},
    "shell": {
        "TZ": "Pacific/Chatham",
        "TERM": "nonsense",
        "COLUMNS": "3",
        "FORCE_COLOR": "1",
        "CLICOLOR_FORCE": "1",
        "EDITOR": "false",
        "PAGER": "false",
        "LESS": "",
        "CDPATH": "/tmp",
        "ENV": "/nowhere",
        "BASH_ENV": "/nowhere",
    },
    "git": {
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere/index",
        "GIT_TRACE": "1",
        "GIT_PAGER": "false",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_EDITOR": "false",
        "GIT_AUTHOR_DATE": "nonsense",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "1",
    },
}


@pytest.mark.parametrize("env", _ODD.values(), ids=_ODD)
def test_no_variable_changes_what_comes_out(tmp_path: Path, usual: dict[str, Any], env: dict[str, str]) -> None:
    """Variables for Python, git, terminals and shells."""
    _compare(_sample(tmp_path, env), usual)


def test_no_umask_changes_what_comes_out(tmp_path: Path, usual: dict[str, Any]) -> None:
    """Git keeps one bit of a file's mode; the others are the user's affair."""
    _compare(_sample(tmp_path, {}, umask=0o077), usual)


def test_no_git_configuration_of_the_user_changes_what_comes_out(tmp_path: Path, usual: dict[str, Any]) -> None:
    """Hooks, signatures, external programs, formats and colours of the user's own git."""
    _compare(_sample(tmp_path, {}, odd_git=True), usual)
