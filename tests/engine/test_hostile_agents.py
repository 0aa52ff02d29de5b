"""The zoo: each agent is one attack; none of them breaks the run, the repository or the terminal."""

from __future__ import annotations

import pytest
from support.checker import check, fingerprint
from support.workbench import Workbench, shell, write

ZOO = {
    "deletes everything": "find . -mindepth 1 -delete 2>/dev/null; true",
    "removes its .git": "rm .git; echo 1 > x.txt",
    "replaces its .git": "rm .git; git init -q; git config core.fsmonitor 'touch ../../fsmonitor-ran';"
    " git config filter.f.clean 'touch ../../filter-ran; cat'; echo '* filter=f' > .gitattributes; echo 1 > x.txt",
    "points .git at the parent": 'echo "gitdir: $PARENT/.git" > .git; echo 1 > x.txt',
    "makes .git a link": "rm .git; ln -s /tmp .git; echo 1 > x.txt",
    "makes .git a pipe": "rm .git; mkfifo .git; echo 1 > x.txt",
    "leaves pipes and sockets": "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")';"
    " echo 1 > x.txt",
    "locks its own directory": "mkdir locked; echo 1 > locked/x.txt; chmod 000 locked; echo 1 > x.txt",
    "detaches its HEAD": "git checkout -q --detach; echo 1 > x.txt",
    "starts another branch": "git checkout -q -b other 2>/dev/null; echo 1 > x.txt",
    "poisons its index": 'printf garbage > "$(git rev-parse --git-dir)/index"; echo 1 > x.txt',
    "wrecks its HEAD": "printf '\\377garbage' > \"$(git rev-parse --git-dir)/HEAD\"; echo 1 > x.txt",
    "makes the bookkeeping folder a file": "rm -rf .orchestrix; echo 1 > .orchestrix",
    "makes the bookkeeping folder a link": "rm -rf .orchestrix; ln -s / .orchestrix",
    "nests deeply": "d=.; for n in $(seq 200); do d=$d/d$n; done; mkdir -p $d && echo 1 > $d/x.txt",
    "ends its parent": "kill -9 $PPID; echo 1 > x.txt",
}


@pytest.mark.parametrize("sandbox", ["auto", "none"])
@pytest.mark.parametrize("attack", ZOO)
def test_an_attack_ends_in_a_verdict_and_never_in_a_crash(bench: Workbench, attack: str, sandbox: str) -> None:
    """The attacker's step is merged or failed by the rules; the step after it is merged; nothing planted has run."""
    if attack == "ends its parent" and sandbox == "none":
        pytest.skip("without a PID namespace the parent's life is in the agent's hands; the log survives it")
    done = bench.run(
        shell(ZOO[attack], env={"PARENT": str(bench.files)}, title=attack),
        write("after.txt", "after\n", needs=[]),
        overlap="allow",
        flags=("--sandbox", sandbox),
    )
    assert done.reasons[0] in ("merged", "agent_failed", "parent_tampered"), done.out
    assert done.reasons[1] == "merged"
    assert bench.tree(done.data["head"])["after.txt"] == "after"
    if done.reasons[0] == "merged" and "x.txt" in ZOO[attack] and attack != "nests deeply":
        assert bench.tree(done.data["head"])["x.txt"] == "1"
    assert not list(bench.root.rglob("*-ran"))
    assert bench.git("status", "--porcelain") == ""


REPORTS = {
    "a link": 'ln -s /etc/passwd "$ORCHESTRIX_REPORT_FILE"',
    "a pipe": 'mkfifo "$ORCHESTRIX_REPORT_FILE"',
    "a directory": 'mkdir "$ORCHESTRIX_REPORT_FILE"',
    "huge": 'head -c 3000000 /dev/zero | tr "\\\\0" x > "$ORCHESTRIX_REPORT_FILE"',
    "not text": 'head -c 5000 /dev/urandom > "$ORCHESTRIX_REPORT_FILE"',
    "broken YAML": 'printf -- "---\\n{[: :\\n---\\nhello\\n" > "$ORCHESTRIX_REPORT_FILE"',
    "a tag without sense": 'printf -- "---\\na: !!bool maybe\\n---\\nhello\\n" > "$ORCHESTRIX_REPORT_FILE"',
    "another tag": 'printf -- "---\\na: !!timestamp never\\nb: !!int \'\'\\n---\\nhello\\n" > "$ORCHESTRIX_REPORT_FILE"',
    "an object": 'printf -- "---\\n!!python/object/apply:os.system [touch ran]\\n---\\n" > "$ORCHESTRIX_REPORT_FILE"',
    "deep": "python3 -c \"print('---\\na: ' + '[' * 50000 + '\\n---')\" > \"$ORCHESTRIX_REPORT_FILE\"",
    "a bomb": 'printf -- "---\\na: &a [x,x]\\nb: &b [*a,*a]\\nc: [*b,*b]\\n---\\n" > "$ORCHESTRIX_REPORT_FILE"',
    "odd types": 'printf -- "---\\nstatus: [1]\\ncriteria: {a: b}\\nownership_exceptions: 7\\n---\\n" > "$ORCHESTRIX_REPORT_FILE"',
    "odd rows": 'printf -- "---\\ncriteria: [1, {criterion: [x], met: 2020-01-01, evidence: {}}]\\n---\\n" > "$ORCHESTRIX_REPORT_FILE"',
}


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_of_any_kind_is_data(bench: Workbench, kind: str) -> None:
    """The files decide; what the agent left at the report's place can neither break nor enrich the outcome."""
    done = bench.run(shell(f"echo 1 > x.txt; {REPORTS[kind]}"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    text = bench.call("report", "latest", "--step", "0").out
    assert "root:" not in text
    assert len(text) < 100_000
    assert bench.tree(done.data["head"]) == {**bench.tree("HEAD"), "x.txt": "1"}


def test_escapes_and_workflow_commands_stay_text(bench: Workbench) -> None:
    """In titles, output, accounts, paths and messages: no control character reaches stdout, stderr or a report raw."""
    evil = r"\033[2J\033]0;owned\007\033[1A\302\233"
    done = bench.run(
        shell(
            f"printf '{evil}\\n::set-output name=x::y\\n\\r::error::z\\n'; printf '{evil}' > $ORCHESTRIX_REPORT_FILE;"
            f" echo 1 > \"$(printf 'x{evil}')\"",
            title="bell \u009b2J and \u202etitle",
            description="\x1b[31mred\x1b[0m",
            checks=[f"printf '{evil}'", f"printf 'more {evil}' >&2; exit 3"],
        ),
        goal="\x1b]0;goal\x07",
    )
    assert (done.code, done.reasons) == (5, ["check_failed"])
    for args in (
        ("status",),
        ("list",),
        ("events",),
        ("events", "latest", "--jsonl"),
        ("status", "latest", "--json"),
        ("logs",),
        ("report",),
        ("report", "latest", "--step", "0"),
        ("report", "latest", "--step", "0", "--json"),
        ("show", "latest"),
        ("show", "latest", "0"),
        ("doctor",),
    ):
        shown = bench.call(*args)
        raw = [char for char in shown.out + shown.err if not char.isprintable() and char not in "\n\t"]
        assert raw == [], args
    plain = bench.call("run", str(bench.root / "plan.json"))
    assert [char for char in plain.out + plain.err if not char.isprintable() and char not in "\n\t"] == []


def test_confinement_leaves_the_parent_unwritable(bench: Workbench) -> None:
    """In the sandbox nothing of the parent, its git dir, the log or another workspace can be written."""
    before = fingerprint(bench.files)
    targets = ["README.md", ".git/config", ".git/hooks/post-merge", ".git/refs/heads/main", ".git/info/attributes"]
    targets += [".orchestrix/local/state.db", ".orchestrix/config.toml", ".git/packed-refs"]
    tries = "; ".join(f'echo planted >> "$PARENT/{name}" && echo {name} >> wrote.txt' for name in targets)
    done = bench.run(
        shell(
            f"({tries}; git config core.hooksPath x && echo config >> wrote.txt;"
            " git update-ref refs/heads/main HEAD~0 $(git hash-object -w /dev/null) && echo ref >> wrote.txt;"
            " git branch stolen && echo branch >> wrote.txt; echo 1 >> a.txt; git stash; git checkout -q -- a.txt;"
            " echo x > ../x && echo sibling >> wrote.txt) 2>/dev/null; echo 1 > x.txt",
            env={"PARENT": str(bench.files)},
        ),
        flags=("--sandbox", "bwrap"),
    )
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert done.steps[0]["changed_paths"] == ["x.txt"], bench.tree(done.data["head"]).get("wrote.txt")
    assert check(bench.files, before=before) == []
