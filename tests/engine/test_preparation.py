"""What a fresh workspace holds, and what a child may see of the environment."""

from __future__ import annotations

import json

import pytest
from support.workbench import Workbench, shell, write


def test_includes_copies_and_links_prepare_a_workspace_and_are_never_committed(bench: Workbench, monkeypatch) -> None:
    """`.worktreeinclude`, the copy list and the link list bring untracked files; none of them is work."""
    bench.commit({".gitignore": ".env\nnode_modules/\n", ".worktreeinclude": ".env\n"})
    (bench.files / ".env").write_text("KEY=1\n")
    (bench.files / "local").mkdir()
    (bench.files / "local/data.json").write_text("{}\n")
    (bench.files / "node_modules/lib").mkdir(parents=True)
    (bench.files / "node_modules/lib/index.js").write_text("x\n")
    monkeypatch.setenv("ORCHESTRIX_WORKSPACE_COPY", "local/")
    monkeypatch.setenv("ORCHESTRIX_WORKSPACE_LINK", "node_modules")
    done = bench.run(
        shell(
            "cat .env local/data.json node_modules/lib/index.js > seen.txt; test -L node_modules",
            checks=["test -e .env"],
        )
    )
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert bench.tree(done.data["head"])["seen.txt"].split() == ["KEY=1", "{}", "x"]
    assert done.steps[0]["changed_paths"] == ["seen.txt"]


@pytest.mark.parametrize("way", ["link", "copy", "include"])
def test_an_editable_install_of_the_checkout_is_refused_before_the_run_exists(
    bench: Workbench, monkeypatch, way: str
) -> None:
    """Linked or copied, its checks would test the checkout: validate, run, ci, agent and doctor say so; no run is made."""
    bench.commit({".gitignore": ".venv/\n", "src/lib.py": "VALUE = 1\n"})
    site = bench.files / ".venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "__editable__.lib-1.0.pth").write_text(f"{bench.files}/src\n")
    if way == "include":
        (bench.files / ".worktreeinclude").write_text(".venv/\n")
    else:
        monkeypatch.setenv(f"ORCHESTRIX_WORKSPACE_{way.upper()}", ".venv/" if way == "copy" else ".venv")
    monkeypatch.setenv("ORCHESTRIX_MODEL", "scripted:none.json")
    plan = str(bench.plan(write("x.txt", "1\n")))
    for call in (("validate", plan), ("run", plan), ("run", plan, "--dry-run"), ("ci", plan)):
        refused = bench.call(*call, "--json")
        assert (refused.code, refused.envelope["error"]["code"]) == (3, "shared_install"), (call, refused)
        assert (
            "/site-packages/__editable__.lib-1.0.pth, which leads back to src" in refused.envelope["error"]["message"]
        )
        assert "setup" in refused.envelope["error"]["hint"]
    findings = {finding["name"]: finding for finding in bench.call("doctor", "--json").data["checks"]}
    assert not findings["installs"]["ok"]
    assert bench.git("for-each-ref", "refs/heads/orchestrix", "refs/orchestrix") == ""
    assert bench.call("list", "--json").envelope["data"]["runs"] == []
    (site / "__editable__.lib-1.0.pth").unlink()
    assert bench.call("run", plan, "--json").reasons == ["merged"]


def test_a_run_is_not_carried_on_with_an_install_that_leads_back(bench: Workbench, monkeypatch) -> None:
    """What was installed between a run and its retry is found as well."""
    monkeypatch.setenv("ORCHESTRIX_WORKSPACE_LINK", "node_modules")
    bench.commit({".gitignore": "node_modules/\n"})
    (bench.files / "node_modules").mkdir()
    assert bench.run(shell("false"), flags=("--run-id", "r1")).code == 1
    (bench.files / "node_modules/lib").symlink_to("../src")
    refused = bench.call("retry", "r1", "0", "--json")
    assert (refused.code, refused.envelope["error"]["places"]) == (3, ["node_modules/lib"])


def test_a_copied_file_that_the_agent_changes_is_work(bench: Workbench, monkeypatch) -> None:
    """Untouched, what preparation brought is left out; changed, it is in the snapshot like any other file."""
    (bench.files / "notes.txt").write_text("mine\n")
    (bench.files / "other.txt").write_text("mine, too\n")
    monkeypatch.setenv("ORCHESTRIX_WORKSPACE_COPY", "notes.txt,other.txt")
    done = bench.run(shell("echo more >> notes.txt"))
    assert (done.code, done.steps[0]["changed_paths"]) == (0, ["notes.txt"]), done.out


def test_a_child_sees_an_allowlist_of_the_environment(bench: Workbench, monkeypatch) -> None:
    """Secrets and git variables are hidden; what the plan or the user passes is there; the contract is complete."""
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("WANTED", "passed")
    monkeypatch.setenv("ORCHESTRIX_ENV_PASS", "WANTED")
    done = bench.run(
        shell(
            'env > env.txt; cat > stdin.txt; cat "$ORCHESTRIX_PROMPT_FILE" > prompt.txt;'
            ' cat "$ORCHESTRIX_CONTRACT_FILE" > contract.json',
            env={"OWN": "from the plan", "ORCHESTRIX_STEP_IDX": "forged"},
            description="Describe me",
        ),
        defaults={"env": {"SHARED": "by all", "OWN": "overridden"}},
        goal="The goal",
    )
    monkeypatch.delenv("GIT_DIR")
    assert done.code == 0, done.out
    tree = bench.tree(done.data["head"])
    seen = dict(line.split("=", 1) for line in tree["env.txt"].splitlines() if "=" in line)
    assert not {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "GIT_DIR"} & set(seen)
    assert (seen["WANTED"], seen["OWN"], seen["SHARED"]) == ("passed", "from the plan", "by all")
    assert (seen["ORCHESTRIX_STEP_IDX"], seen["ORCHESTRIX_RUN_ID"]) == ("0", done.data["run_id"])
    assert seen["ORCHESTRIX_REPORT_FILE"].endswith("/.orchestrix/step-0-result.md")
    assert tree["stdin.txt"] == tree["prompt.txt"]
    assert all(text in tree["prompt.txt"] for text in ("The goal", "Describe me", ".orchestrix/step-0-result.md"))
    assert json.loads(tree["contract.json"])["parent"]["run_id"] == done.data["run_id"]


def test_setup_runs_in_every_workspace_and_its_files_are_work(bench: Workbench) -> None:
    """Also before the checks on the merged tree; text is for a shell, a list is an argument list."""
    done = bench.run(
        shell("echo 1 > one.txt", owns=["one.txt"]),
        shell(
            "echo 2 > two.txt",
            owns=["two.txt"],
            setup=[
                ["mkdir", "-p", "/tmp/x"],
                "echo ready > .git-ready; mv .git-ready $HOME/ready 2>/dev/null || rm .git-ready",
            ],
            checks=["test -e one.txt || test -e two.txt"],
        ),
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    purposes = [event["payload"]["purpose"] for event in bench.events() if event["type"] == "attempt.process_started"]
    assert purposes.count("setup") == 4
