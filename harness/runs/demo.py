"""The demo's repository, and the judgement that the run on it did what a run must do."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from harness.errors import EnvironmentProblem, Exit, UsageError
from harness.model.state import RunState
from harness.vcs import found

_FILES = {
    "README.md": "# Greeter\n\nA very small project.\n",
    "greeter.py": 'GREETING = "Hello"\n\n\ndef greet(name):\n    return f"{GREETING}, {name}"\n',
}


def make(directory: Path | None) -> Path:
    """A repository with one commit and the demo plan; raises UsageError when the directory is in use."""
    root = (directory or Path(tempfile.mkdtemp(prefix="orchestrix-demo-"))).resolve()
    if root.exists() and any(root.iterdir()):
        raise UsageError(f"{root} is not empty", hint="give a directory that does not exist yet")
    if shutil.which("git") is None:
        raise EnvironmentProblem("git is not installed", hint="install git 2.38 or newer")
    root.mkdir(parents=True, exist_ok=True)
    for name, text in _FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    found.repository(root, "Start")
    folder = root / ".orchestrix"
    folder.mkdir()
    plan = (resources.files("harness.runs") / "demo.yaml").read_text(encoding="utf-8")
    (folder / "demo.yaml").write_text(plan, encoding="utf-8")
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return root


def program() -> str:
    """What a person types to start this program again from any directory."""
    called = Path(sys.argv[0])
    found = shutil.which("orchestrix")
    if found is not None and called.exists() and Path(found).samefile(called):
        return "orchestrix"
    if called.name == "orchestrix":
        return shlex.quote(str(called.absolute()))
    return f"{shlex.quote(sys.executable)} -m harness"


def judge(state: RunState, say: Callable[[str], None], root: Path) -> int:
    """The demo succeeds when exactly its deliberate conflict failed."""
    outcomes = [step.close_reason for step in state.ordered()]
    say("")
    say(f"The repository is {root}. Look around:")
    for command in ("status", "report latest --step 3", "events", "audit", "land --partial", "undo"):
        say(f"  {program()} {command} -C {shlex.quote(str(root))}")
    if outcomes == ["merged", "merged", "merged", "merge_conflict"] and state.exit_code == Exit.CONFLICT:
        say("As intended: three steps were merged, the fourth conflicted, failed and kept its work (run exit code 4).")
        return Exit.OK
    say(f"Not as intended: {outcomes}")
    return Exit.STEP_FAILED
