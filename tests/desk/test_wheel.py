"""The wheel has everything that the tree has, and works where nothing of the tree can be seen."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

from desk.conftest import Desk
from support.workbench import ROOT


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Templates, prompts, profiles and SQL are as much of the program as its code."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard", "--", "harness"], cwd=ROOT, capture_output=True, check=True
    )
    tree = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
        assert packed == tree
        assert [name for name in sorted(tree) if archive.read(name) != (ROOT / name).read_bytes()] == []


def test_the_first_commands_work_from_the_wheel(desk: Desk) -> None:
    """Demo, then what the README says to type: it moves no branch. A plan with a change is landed and taken back."""
    desk.says("orchestrix", "demo", str(desk.root / "home/demo"))
    plan, before = ".orchestrix/plan.yaml", desk.says("git", "rev-parse", "main")
    for words in (("init",), ("validate", plan), ("run", plan), ("report", "--step", "0"), ("land",)):
        assert desk.says("orchestrix", *words)
    assert desk.says("git", "rev-parse", "main") == before
    change = {"title": "greet", "actions": [{"write_file": {"path": "hello.txt", "content": "hello\n"}}]}
    for words in (("run", desk.plans(change)), ("land",)):
        assert desk.says("orchestrix", *words)
    state = json.loads(desk.says("orchestrix", "status", "latest", "--json"))["data"]
    assert state["status"] == "succeeded"
    assert state["landed"] == desk.says("git", "rev-parse", "main").strip()
    assert desk.says("orchestrix", "undo")
    assert desk.says("git", "rev-parse", "main") == before
    assert desk.says("python", "-c", "import harness; print(harness.__file__)").startswith(str(desk.programs.parent))
