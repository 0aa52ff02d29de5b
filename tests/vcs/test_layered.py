"""Overlay workspaces: what they cost, what they share, and that their snapshot is the one that git would give."""

from __future__ import annotations

import errno
import gc
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.parts import MERE_USER

from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.model.ids import RunId, TaskId, work_branch
from harness.vcs import layered, overlay, snapshot, templates
from harness.vcs import workspace as worktrees
from harness.vcs.disk import DiskSpace
from harness.vcs.ignored import Ignored
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

BRANCH = work_branch(RUN, TaskId("0"))
NAMES = ["a.txt", "b.log", "c.dat", "run.sh", "deep/d.txt", "deep/e.log", "deep/er/f.txt", "new/g.txt", "x y", "ü"]
RULES = {
    "none": {},
    "ignore": {".gitignore": "*.log\n/new/\n!keep.log\n"},
    "attributes": {".gitattributes": "*.txt text eol=crlf\n*.dat -text\n*.sh ident\n", ".gitignore": "*.log\n"},
    "auto": {".gitattributes": "* text=auto\n"},
}


@pytest.fixture
def workspaces() -> str:
    return "overlay"


def by_git(vcs: Repository, name: str) -> str:
    """The snapshot of the same workspace, taken by git over all of its files."""
    place, workspace = vcs._place(RUN, name), vcs.find_workspace(RUN, name)
    assert workspace is not None
    return snapshot.take(vcs._private_of(RUN).git(place.tree), workspace.private_index, [], ()).tree


def from_upper(vcs: Repository, name: str) -> str | None:
    """The snapshot from the upper directory alone."""
    place = vcs._place(RUN, name)
    card = worktrees.read_card(place)
    assert card is not None
    assert card.template is not None
    quick = layered.Layered(vcs._objects, vcs._special_paths)
    return quick.tree(place, vcs._private_of(RUN), (card.template, vcs.tree_of(card.start)), (), Ignored())


def put(rng: random.Random, target: Path) -> None:
    """Something new under a name, whatever is there or above it."""
    if os.path.lexists(target.parent) and not target.parent.is_dir():
        target.parent.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
    kind = rng.choice(["file", "file", "file", "link", "folder", "nothing"])
    if kind == "file":
        target.write_bytes(rng.choice([b"one\n", b"one\r\ntwo\r\n", b"\0bin", b"", b"$Id$\n"]) * rng.randrange(3))
    elif kind == "link":
        target.symlink_to(rng.choice(["nowhere", "a.txt", "../.."]))
    elif kind == "folder":
        target.mkdir()
        (target / "inside.txt").write_text("inside\r\n")


def edit(rng: random.Random, root: Path) -> None:
    """One thing that an agent might do."""
    target = root / rng.choice(NAMES)
    kind = rng.choice(["put", "put", "put", "mode", "rules", "move", "empty", "again"])
    if kind == "put":
        put(rng, target)
    elif kind == "mode" and target.is_file():
        target.chmod(rng.choice([0o644, 0o755, 0o700]))
    elif kind == "rules":
        (root / ".gitignore").write_text(rng.choice(["*.dat\n", "deep/\n", ""]))
    elif kind == "move" and target.is_file():
        target.rename(root / f"moved{rng.randrange(3)}.txt")
    elif kind == "empty":
        (root / "void" / "er").mkdir(parents=True, exist_ok=True)
    elif kind == "again" and (root / "deep").is_dir():
        shutil.rmtree(root / "deep")
        (root / "deep").mkdir()


@pytest.mark.parametrize("rules", RULES)
def test_the_upper_directory_gives_the_tree_that_git_gives(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], rules: str
) -> None:
    """Generated edits under ignore rules and attributes: the same tree, and hardly ever is git asked."""
    for name in NAMES[:7]:
        checkout.write(name, b"one\r\n" if name.endswith("e.log") else b"one\ntwo\n")
    checkout.git("add", "--force", "--all")
    checkout.git("commit", "--quiet", "--message", "files")
    first = checkout.commit("rules", **RULES[rules])
    second = checkout.commit("later", **{"a.txt": "later\n", "deep/more.txt": "more\n"})
    vcs, decided = open_vcs(checkout.root), 0
    for seed in range(24):
        rng, name = random.Random(f"{rules}-{seed}"), str(seed)
        workspace = vcs.open_workspace(RUN, name, vcs.resolve(first if seed % 2 else second), None)
        for _ in range(rng.randrange(1, 7)):
            edit(rng, workspace.path)
        tree = from_upper(vcs, name)
        assert tree in (None, by_git(vcs, name)), f"seed {rules}-{seed}"
        decided += tree is not None
        vcs.retire_workspace(RUN, name)
    assert decided >= 20


def test_bookkeeping_beside_the_work_does_not_slow_it_down(checkout: Checkout, vcs: Repository) -> None:
    """Every step has a report in its workspace: it is left out without asking git, and other files there are work."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    (workspace.path / ".orchestrix" / "local").mkdir(parents=True)
    for name in ("step-0-result.md", "local/state.db", "plan.yaml"):
        (workspace.path / ".orchestrix" / name).write_text("x")
    assert from_upper(vcs, "0") == by_git(vcs, "0")
    assert [change.path for change in vcs.snapshot(workspace, "work", 1).changes] == [".orchestrix/plan.yaml"]


def test_git_in_an_overlay_is_clean_and_does_not_read_every_file(checkout: Checkout, vcs: Repository) -> None:
    """Stat data holds without any setting of ours: `diff-files`, which never refreshes the index, sees no difference."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    assert checkout.git("diff-files", "--raw", cwd=workspace.path) == ""
    (workspace.path / "README.md").write_text("HELLO\n")
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == "M README.md"
    checkout.git("commit", "--quiet", "--all", "--message", "mine", cwd=workspace.path)
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""
    assert checkout.content("HEAD", "README.md") == b"hello\n"


def test_the_shared_checkout_is_made_once_and_never_changes(checkout: Checkout, vcs: Repository) -> None:
    """Two steps, one start point: one checkout, and what they write is not in it."""
    start = vcs.resolve("HEAD")
    for name in ("0", "1"):
        workspace = vcs.open_workspace(RUN, name, start, None)
        (workspace.path / "README.md").write_text(name)
        (workspace.path / "src" / "lib.py").unlink()
    (template,) = (vcs.state_dir / "_templates").glob("*/tree")
    assert (template / "README.md").read_text() == "hello\n"
    assert (template / "src" / "lib.py").is_file()


def test_a_start_point_nearby_shares_the_checkout(checkout: Checkout, vcs: Repository) -> None:
    """What differs is laid over it; the snapshot still is one on the step's own start point."""
    vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    later = vcs.resolve(checkout.commit("later", **{"README.md": "later\n", "more.txt": "more\n"}))
    workspace = vcs.open_workspace(RUN, "1", later, BRANCH)
    assert (workspace.path / "README.md").read_text() == "later\n"
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""
    assert vcs.snapshot(workspace, "nothing", 1).changes == ()
    assert len(list((vcs.state_dir / "_templates").glob("*/tree"))) == 1


def test_a_shared_checkout_that_somebody_wrote_to_is_made_again(
    checkout: Checkout, open_vcs: Callable[[Path], Repository]
) -> None:
    """While a run uses it, the next one refuses; when nobody does, it is replaced."""
    vcs = open_vcs(checkout.root)
    vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    (template,) = (vcs.state_dir / "_templates").glob("*/tree")
    (template / "planted").write_text("x")
    other = open_vcs(checkout.root)
    with pytest.raises(EnvironmentProblem, match="was written to, and another run uses it"):
        other.open_workspace(RunId("r2"), "1", vcs.resolve("HEAD"), None)
    vcs.forget_run(RUN)
    del vcs
    gc.collect()  # closes its descriptors: contextlib leaves cycles that hold it on some Pythons
    workspace = other.open_workspace(RunId("r2"), "1", other.resolve("HEAD"), None)
    assert not (workspace.path / "planted").exists()


def test_a_shared_checkout_is_prepared_while_others_work(
    checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first workspace far from the others is laid over what is there; the next one finds a checkout of its own."""
    monkeypatch.setattr(limits, "TEMPLATE_DELTA", 0)
    monkeypatch.setattr(limits, "TEMPLATE_SHARE", 1)
    vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    later = vcs.resolve(checkout.commit("later", **{"README.md": "later\n"}))
    kinds = []
    for name in ("1", "2"):
        workspace = vcs.open_workspace(RUN, name, later, None)
        assert (workspace.path / "README.md").read_text() == "later\n"
        kinds.append((vcs._place(RUN, name).upper / "README.md").exists())
        vcs.workspaces()  # waits for what is done in the background
    assert kinds == [True, False]


def test_the_shared_checkout_is_begun_before_anybody_asks(
    checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes meanwhile waits for it instead of making it again; what cannot be begun is harmless."""
    made = []
    real = templates._make
    monkeypatch.setattr(templates, "_make", lambda *args: (made.append(args[1]), real(*args)))
    start = vcs.resolve("HEAD")
    vcs.warm(RUN, start)
    workspace = vcs.open_workspace(RUN, "0", start, None)
    assert (workspace.path / "README.md").read_text() == "hello\n"
    vcs.workspaces()  # waits for what is done in the background
    assert made == [vcs.tree_of(start)]
    later = vcs.resolve(checkout.commit("later", **{"README.md": "later\n"}))
    monkeypatch.setattr(templates, "_make", _no_room)
    vcs.warm(RUN, later)
    vcs.workspaces()


def _no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_an_overlay_leaves_waits_in_the_trash_until_the_disk_has_lost_much(
    vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is a workspace or in the git dir any more; it goes with the run at the latest."""
    start, trash = vcs.resolve("HEAD"), vcs.state_dir / RUN / "trash"
    much = 100 * limits.TRASH_BYTES
    monkeypatch.setattr(DiskSpace, "_free", lambda _: (free, 0))
    free = much
    vcs.choose_workspaces("overlay")
    for name, lost in (("0", 0), ("1", limits.TRASH_BYTES - 1), ("2", limits.TRASH_BYTES)):
        free = much - lost
        workspace = vcs.open_workspace(RUN, name, start, None)
        (workspace.path / "work.txt").write_text("work")
        vcs.retire_workspace(RUN, name)
        vcs.workspaces()  # waits for what is done in the background
        assert vcs.find_workspace(RUN, name) is None
        assert not workspace.admin.exists()
        assert trash.exists() == (lost < limits.TRASH_BYTES)
    vcs.open_workspace(RUN, "3", start, None)
    vcs.retire_workspace(RUN, "3")
    vcs.forget_run(RUN)
    assert not [path for path in vcs.state_dir.iterdir() if path.name in (RUN, "_trash")]
    assert not [path for path in vcs.common_dir.iterdir() if path.name.startswith(("orchestrix", "worktrees"))]


def test_a_shared_checkout_that_no_workspace_stands_on_makes_room_during_the_run(
    checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long chain of steps does not pile up checkouts; the one under a live workspace stays."""
    monkeypatch.setattr(limits, "TEMPLATE_DELTA", 0)
    monkeypatch.setattr(limits, "TEMPLATE_SHARE", 1_000)
    monkeypatch.setattr(limits, "TEMPLATE_BYTES", 1)
    alive = vcs.open_workspace(RUN, "alive", vcs.resolve("HEAD"), None)
    for number in range(4):
        start = vcs.resolve(checkout.commit("next", **{"README.md": f"{number}\n"}))
        vcs.open_workspace(RUN, str(number), start, None)
        vcs.retire_workspace(RUN, str(number))
        vcs.workspaces()  # waits for what is done in the background
    assert len(list((vcs.state_dir / "_templates").glob("*/tree"))) == 2
    assert (alive.path / "README.md").read_text() == "hello\n"


def test_shared_checkouts_go_when_they_take_too_much_room(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest unused go first; one that is in use stays."""
    monkeypatch.setattr(limits, "TEMPLATE_DELTA", 0)
    monkeypatch.setattr(limits, "TEMPLATE_BYTES", 1)
    old = open_vcs(checkout.root)
    old.open_workspace(RUN, "0", old.resolve("HEAD"), None)
    checkout.commit("second", **{"new.txt": "x"})
    new = open_vcs(checkout.root)
    new.open_workspace(RunId("r2"), "0", new.resolve("HEAD"), None)
    folder = new.state_dir / "_templates"
    new.forget_run(RunId("r2"))
    assert len(list(folder.glob("*/tree"))) == 2
    old.forget_run(RUN)
    del old
    gc.collect()  # as above
    new.forget_run(RunId("r2"))
    assert len(list(folder.glob("*/tree"))) == 1


def test_nothing_stays_mounted_when_the_coordinator_is_killed(checkout: Checkout, vcs: Repository) -> None:
    """Mounts end with their process; the work is in the upper directory, and the next one takes it from there."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from harness import namespace\n"
        "from harness.model.ids import RunId\n"
        "from harness.vcs.repository import Repository\n"
        "vcs = Repository.discover(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "vcs.choose_workspaces('overlay')\n"
        "workspace = vcs.open_workspace(RunId('r1'), '0', vcs.resolve('HEAD'), None)\n"
        "(Path(namespace.seen(workspace.path)) / 'work.txt').write_text('work')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(checkout.root), str(vcs.state_dir.parent)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, check=False)
    assert done.returncode == -9
    place = vcs._place(RUN, "0")
    assert not overlay.is_mounted(place)
    workspace = vcs.find_workspace(RUN, "0")
    assert workspace is not None
    assert [change.path for change in vcs.snapshot(workspace, "kept", 1).changes] == ["work.txt"]
    vcs.remove_workspace(RUN, "0")
    assert not place.tree.exists()


def test_overlays_work_without_root_in_a_program_with_threads(checkout: Checkout, tmp_path: Path) -> None:
    """Files, deletions and replaced directories arrive, and git agrees; each call comes from another thread."""
    script = (
        "import shutil, sys, threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from tests.vcs.test_layered import *\n"
        "from tests.vcs.conftest import Visible\n"
        "vcs, stop = Visible.discover(Path(sys.argv[1]), Path(sys.argv[2])), threading.Event()\n"
        "threading.Thread(target=stop.wait).start()\n"
        "def apart(act, *given):\n"
        "    with ThreadPoolExecutor(1) as pool: return pool.submit(act, *given).result()\n"
        "kind = apart(vcs.choose_workspaces, 'auto')\n"
        "workspace = apart(vcs.open_workspace, RUN, '0', vcs.resolve('HEAD'), BRANCH)\n"
        "(workspace.path / 'README.md').unlink()\n"
        "shutil.rmtree(workspace.path / 'src')\n"
        "(workspace.path / 'src').mkdir()\n"
        "(workspace.path / 'src' / 'new.py').write_text('new')\n"
        "same = apart(from_upper, vcs, '0') == apart(by_git, vcs, '0')\n"
        "changes = apart(vcs.snapshot, workspace, 'work', 1).changes\n"
        "apart(vcs.forget_run, RUN)\n"
        "stop.set()\n"
        "print(kind.name, *(change.path for change in changes), same)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*MERE_USER, sys.executable, "-W", "error", "-c", script, str(checkout.root), str(tmp_path / "state")],
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "overlay README.md src/app.py src/lib.py src/new.py True\n"


def test_an_interrupted_overlay_is_read_by_a_coordinator_that_makes_checkouts(
    checkout: Checkout, vcs: Repository
) -> None:
    """Found by one thread and taken by another: both see the mount, although this run would not have made it."""
    checkout.commit("rules", **{".gitattributes": "*.txt text\n"})
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    (workspace.path / "work.txt").write_bytes(b"one\r\n")
    overlay.unmount(vcs._place(RUN, "0"))
    script = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from pathlib import Path\n"
        "from harness.model.ids import RunId\n"
        "from harness.vcs.repository import Repository\n"
        "vcs = Repository.discover(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "assert vcs.choose_workspaces('checkout').name == 'checkout'\n"
        "with ThreadPoolExecutor(1) as finder, ThreadPoolExecutor(1) as taker:\n"
        "    found = finder.submit(vcs.find_workspace, RunId('r1'), '0').result()\n"
        "    print(*(change.path for change in taker.submit(vcs.snapshot, found, 'kept', 1).result().changes))\n"
    )
    command = [sys.executable, "-c", script, str(checkout.root), str(vcs.state_dir.parent)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "work.txt\n", "")
