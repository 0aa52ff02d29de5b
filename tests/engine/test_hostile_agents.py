"""The zoo: each agent is one attack; none of them breaks the run, the repository or the terminal."""

from __future__ import annotations

from pathlib import Path

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
    "nests deeply": "d=.; for n in $(seq 200); do d=$d/d$n; done; mkdir -p $d && echo 1 > $d/x.txt",
    "ends its parent": "kill -9 $PPID; echo 1 > x.txt",
}


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_every_attack_ends_in_a_verdict_and_the_run_goes_on(bench: Workbench, sandbox: str) -> None:
    """Each attacker is merged or failed by the rules; the step after them is merged; nothing planted has run."""
    # Without a PID namespace the parent's life is in the agent's hands: the kill sweep is about that.
    attacks = [name for name in ZOO if sandbox != "none" or name != "ends its parent"]
    done = bench.run(
        *(shell(ZOO[name], env={"PARENT": str(bench.files)}, title=name) for name in attacks),
        write("after.txt", "after\n"),
        overlap="allow",
        flags=("--sandbox", sandbox, "-j", "1"),
    )
    verdicts = dict(zip(attacks, done.reasons, strict=False))
    odd = {name: verdict for name, verdict in verdicts.items() if verdict not in ("merged", "agent_failed")}
    assert odd == {}, done.out
    assert done.reasons[-1] == "merged"
    tree = bench.tree(done.data["head"])
    assert (tree["after.txt"], tree["x.txt"]) == ("after", "1")
    assert "a.txt" not in tree
    assert not list(bench.root.rglob("*-ran"))
    assert bench.git("status", "--porcelain") == ""


def test_a_link_in_place_of_the_bookkeeping_folder_is_not_followed(bench: Workbench) -> None:
    """It is the agent's work like any other link; nothing is read or written through it, and the run goes on."""
    done = bench.run(shell("rm -rf .orchestrix; ln -s / .orchestrix"), write("after.txt", "after\n"), overlap="allow")
    assert done.reasons == ["merged", "merged"], done.out


def test_an_agent_that_replaces_its_own_workspace_fails_alone(bench: Workbench) -> None:
    """Removed, a file, or a link to the parent in its place: nothing is taken through it, and the run goes on."""
    (bench.files / "private.txt").write_text("never committed\n")
    away = 'd="$PWD"; cd /; rm -rf "$d"'
    done = bench.run(
        shell(away, title="removed"),
        shell(f'{away}; echo x > "$d"', title="a file"),
        shell(f'{away}; ln -s "$PARENT" "$d"', title="a link", env={"PARENT": str(bench.files)}),
        write("after.txt", "after\n"),
        overlap="allow",
        flags=("--sandbox", "none", "-j", "1"),
    )
    assert done.reasons == ["agent_failed", "agent_failed", "agent_failed", "merged"], done.out
    assert (bench.files / "private.txt").read_text() == "never committed\n"


@pytest.mark.parametrize(
    "script",
    [
        'rm -f "$REF"; mkdir -p "$REF/sub"; echo x > "$REF/sub/x"',
        'echo garbage > "$REF"',
        'echo garbage > "$(dirname "$REF")/other"',
        'touch "$REF.lock"',
        'rm -f "$REF"; ln -s ../../../main "$REF"',
        'rm -f "$REF"; mkfifo "$REF"',
    ],
)
def test_a_confined_agent_that_wrecks_its_own_ref_fails_at_most_alone(tmp_path: Path, script: str) -> None:
    """The published branch is out of its reach, and its own git dir holds nothing that stops the run."""
    bench = Workbench(tmp_path)
    main = bench.commit({"a.txt": "one\n"})
    name = "refs/heads/orchestrix/$ORCHESTRIX_RUN_ID/0/work"
    places = (f"$PARENT/.git/{name}", f"$(git rev-parse --git-dir)/{name}")
    wreck = "".join(f'REF="{place}"; mkdir -p "$(dirname "$REF")"; {script}; ' for place in places) + "echo 1 > x.txt"
    done = bench.run(shell(wreck, env={"PARENT": str(bench.files)}), write("after.txt", "after\n"), overlap="allow")
    assert done.reasons[1] == "merged", done.out
    assert done.reasons[0] in ("merged", "agent_failed", "parent_tampered")
    assert check(bench.files) == []
    assert bench.git("rev-parse", "main") == main


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


def test_a_report_of_any_kind_is_data(bench: Workbench) -> None:
    """The files decide; what an agent left at its report's place can neither break nor enrich the outcome."""
    done = bench.run(
        *(
            shell(f"echo 1 > {number}.txt; {script}", owns=[f"{number}.txt"], title=kind)
            for number, (kind, script) in enumerate(REPORTS.items())
        )
    )
    assert (done.code, dict(zip(REPORTS, done.reasons, strict=True))) == (0, dict.fromkeys(REPORTS, "merged")), done.out
    for number in range(len(REPORTS)):
        text = bench.call("report", "latest", "--step", str(number)).out
        assert "root:" not in text
        assert len(text) < 100_000
    added = {f"{number}.txt": "1" for number in range(len(REPORTS))}
    assert bench.tree(done.data["head"]) == {**bench.tree("HEAD"), **added}
    broken = list(REPORTS).index("a tag without sense")
    assert "front matter does not parse" in bench.call("report", "latest", "--step", str(broken)).out


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
            f"({tries}; git -C $PARENT config core.hooksPath x && echo config >> wrote.txt;"
            " git -C $PARENT update-ref refs/heads/main HEAD~0 && echo ref >> wrote.txt;"
            " git -C $PARENT branch stolen && echo branch >> wrote.txt; git -C $PARENT hash-object -w a.txt && echo object >> wrote.txt;"
            " echo x > ../x && echo sibling >> wrote.txt) 2>/dev/null; echo 1 > x.txt",
            env={"PARENT": str(bench.files)},
        ),
        flags=("--sandbox", "bwrap"),
    )
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert done.steps[0]["changed_paths"] == ["x.txt"], bench.tree(done.data["head"]).get("wrote.txt")
    assert check(bench.files, before=before) == []
