"""The user's own git works at every instant beside agents that commit, and after a coordinator was killed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checker import check
from support.coordinators import PATIENCE_SECONDS, started, wait_until
from support.workbench import Workbench, shell

STEPS = 8
MISSING = re.compile(r"(?:missing \w+|broken link from +\w+|to +\w+) ([0-9a-f]{40})")


class User:
    """A person who works in the repository all the time; what their git says when it fails is remembered."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.failures: list[str] = []
        self.rounds = 0
        for name in ("mirror", "upstream"):
            bench.git("init", "-q", "--bare", str(bench.root / name))
            bench.git("remote", "add", name, str(bench.root / name))
        bench.git("push", "-q", "upstream", "main")

    def work(self) -> None:
        """One round of everything that walks refs and objects."""
        self.rounds += 1
        clone = self.bench.root / f"clone-{self.rounds}"
        for args in (
            ("log", "--all", "--oneline"),
            ("fetch", "-q", "--all"),
            ("pack-refs", "--all"),
            ("push", "-q", "--all", "mirror"),
            ("gc", "-q"),
            ("clone", "-q", "--no-local", str(self.bench.files), str(clone)),
            ("repack", "-a", "-d", "-q"),
            ("fsck", "--no-dangling", "--no-progress"),
        ):
            done = subprocess.run(["git", *args], cwd=self.bench.files, capture_output=True, text=True, check=False)
            if done.returncode and not (args[0] == "fsck" and self._came_later(done.stdout + done.stderr)):
                self.failures.append(f"git {' '.join(args)}: {done.stdout}{done.stderr}")

    def _came_later(self, said: str) -> bool:
        """Git's fsck lists objects first and reads refs afterwards: what anybody commits meanwhile counts as missing.

        It is no failure when every object that it names is there, and it names nothing else.
        """
        lines = [line for line in said.splitlines() if line.strip()]
        named = [MISSING.search(line) for line in lines]
        return bool(lines) and all(found and self._has(found[1]) for found in named)

    def _has(self, oid: str) -> bool:
        asked = subprocess.run(["git", "cat-file", "-e", oid], cwd=self.bench.files, capture_output=True, check=False)
        return asked.returncode == 0

    def work_until(self, over: Callable[[], bool]) -> None:
        self.work()
        while not over():
            self.work()


def _committing(bench: Workbench, idx: int) -> dict[str, object]:
    """Commits, stashes and makes refs before and after the gate opens."""
    name = f"s{idx}.txt"
    commit = f"echo $i >> {name}; git add {name}; git commit -qm $i || exit 9"
    return shell(
        f"for i in 1 2 3; do {commit}; done; git branch mine-{idx} || exit 9; git tag tag-{idx} || exit 9;"
        f" touch ready-{idx}-$ORCHESTRIX_ATTEMPT; while ! test -e {bench.root / 'gate'}; do sleep 0.05; done; rm ready-{idx}-*;"
        f" for i in 4 5 6; do {commit}; git status --porcelain || exit 9; git log --all --oneline || exit 9; done",
        owns=[name],
    )


def _beside(tmp_path: Path, *flags: str, lives: int) -> None:
    bench = Workbench(tmp_path)
    bench.commit({"a.txt": "one\n"}, "First")
    bench.commit({"a.txt": "two\n"}, "Second")
    user = User(bench)
    plan = bench.plan(*(_committing(bench, idx) for idx in range(STEPS)))
    args = ("run", str(plan), "--json", "--run-id", "r1", "-j", str(STEPS), *flags)
    for attempt in range(1, lives + 1):
        with started(bench, *args) as coordinator:
            for idx in range(STEPS):
                coordinator.until_written(f"ready-{idx}-{attempt}")
            user.work()
            coordinator.kill()
        user.work()
        assert user.failures == []
        args = ("resume", "r1", "--json")
    with started(bench, *args) as coordinator:
        wait_until(lambda: bool(bench.git("for-each-ref", "refs/heads/orchestrix/r1")), "the run's first ref")
        user.work()
        (bench.root / "gate").touch()
        user.work_until(lambda: coordinator.process.poll() is not None)
        out, err = coordinator.process.communicate(timeout=PATIENCE_SECONDS)
    user.work()
    assert user.failures == []
    assert coordinator.process.returncode == 0, out + err
    failed = [e["payload"] for e in bench.events("r1") if e["type"] == "attempt.finished" and not e["payload"]["ok"]]
    assert failed == []
    written = "\n".join("123456")
    assert {name: text for name, text in bench.tree("orchestrix/r1/integration").items() if name != "a.txt"} == {
        f"s{idx}.txt": written for idx in range(STEPS)
    }
    kept = bench.git("for-each-ref", "--format=%(contents:subject)", "refs/orchestrix/keep/r1/").split()
    assert {subject: kept.count(subject) for subject in ("3", "6")} == {"3": STEPS * (lives + 1), "6": STEPS}
    assert bench.git("fsck", "--strict", "--no-dangling", "--no-progress") == ""
    assert check(bench.files) == []


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("kind", ["checkout", "overlay"])
def test_the_users_git_beside_eight_agents_and_a_kill(tmp_path: Path, kind: str, sandbox: str) -> None:
    """No command of the user fails, no agent's git fails, and the commits of the killed attempts are kept."""
    _beside(tmp_path, "--workspace", kind, "--sandbox", sandbox, lives=1)


@pytest.mark.sweep
@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("kind", ["checkout", "overlay"])
def test_the_users_git_beside_eight_agents_and_many_kills(tmp_path: Path, kind: str, sandbox: str) -> None:
    """The same with as many kills as a step survives."""
    _beside(tmp_path, "--workspace", kind, "--sandbox", sandbox, lives=3)
