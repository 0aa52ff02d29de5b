"""A checkout moves with its branch or not at all: whatever git is told by its settings, and whenever the process dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import LandingRefused
from harness.model.ids import CommitId, RefName
from harness.vcs.repository import Repository
from tests.vcs.conftest import Checkout

MAIN = RefName("refs/heads/main")
ROOT = Path(__file__).resolve().parents[2]
_MANY = 300


@pytest.fixture
def ahead(checkout: Checkout, vcs: Repository) -> CommitId:
    """A commit on main's that changes, adds, removes, links, and swaps a file and a directory; main is where it was."""
    checkout.write("swap", "a file\n")
    checkout.write("dir/one", "1\n")
    start = checkout.commit("more", **{"gone/deep": "bye\n"})
    checkout.git("rm", "-q", "gone/deep", "swap", "dir/one")
    checkout.write("README.md", "landed\n")
    checkout.write("new/file", "new\n")
    checkout.write("swap/inner", "a directory now\n")
    checkout.write("dir", "a file now\n")
    (checkout.root / "link").symlink_to("README.md")
    checkout.write("tool", "#!/bin/sh\n").chmod(0o755)
    new = checkout.commit("ahead")
    checkout.git("reset", "-q", "--hard", start)
    return CommitId(new)


def everything(checkout: Checkout) -> dict[str, bytes]:
    """All files, and what git says of them."""
    found = {"status": checkout.git("status", "--porcelain", "--ignored", "--untracked-files=all").encode()}
    for path in sorted(checkout.root.rglob("*")):
        name = str(path.relative_to(checkout.root))
        if not name.startswith(".git") and (path.is_symlink() or path.is_file()):
            found[name] = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
    return found


def landed(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """Lands, and asks git whether branch, index and files are those of the commit."""
    vcs.fast_forward(MAIN, ahead)
    assert checkout.git("rev-parse", "main", "HEAD").split() == [ahead, ahead]
    assert checkout.git("status", "--porcelain") == ""
    no_remains(checkout)


def no_remains(checkout: Checkout) -> None:
    left = [
        path.name for path in (checkout.root / ".git").iterdir() if "orchestrix" in path.name or "lock" in path.name
    ]
    assert left == []


def refused(checkout: Checkout, vcs: Repository, branch: RefName, new: CommitId) -> LandingRefused:
    """Refuses, and no file, ref or entry of the index is another one afterwards."""
    before = everything(checkout), checkout.git("for-each-ref"), checkout.git("ls-files", "-s", "-v")
    with pytest.raises(LandingRefused) as caught:
        vcs.fast_forward(branch, new)
    assert (everything(checkout), checkout.git("for-each-ref"), checkout.git("ls-files", "-s", "-v")) == before
    return caught.value


SETTINGS = [
    "branch.main.mergeoptions=--squash",
    "branch.main.mergeoptions=-s ours",
    "branch.main.mergeoptions=--no-ff --no-commit",
    "merge.ff=false",
    "merge.ff=only",
    "merge.autoStash=true",
    "merge.verifySignatures=true",
    "commit.gpgSign=true",
    "core.hooksPath=.git/odd-hooks",
    "core.autocrlf=true",
    "core.autocrlf=input",
    "core.splitIndex=true",
    "core.fsmonitor=.git/odd-hooks/post-merge",
    "core.untrackedCache=true",
    "core.fileMode=false",
    "index.version=4",
    "index.sparse=true",
    "submodule.recurse=true",
    "core.logAllRefUpdates=false",
    "pull.rebase=true",
    "advice.diverging=true",
    "checkout.workers=0",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_of_git_makes_it_half(checkout: Checkout, vcs: Repository, ahead: CommitId, setting: str) -> None:
    """A user's settings for merges, hooks, signatures and the index neither stop a landing nor bend it."""
    hooks = checkout.root / ".git" / "odd-hooks"
    hooks.mkdir()
    for name in ("post-merge", "reference-transaction", "post-checkout", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {checkout.root}/.git/hooked\nexit 1\n")
        (hooks / name).chmod(0o755)
    checkout.git("config", *setting.split("=", 1))
    checkout.git("update-index", "-q", "--refresh")
    (checkout.root / ".git" / "hooked").unlink(missing_ok=True)
    start = vcs.resolve("main")
    assert vcs.fast_forward(MAIN, ahead) == start
    assert not (checkout.root / ".git" / "hooked").exists()
    landed(checkout, vcs, ahead)
    assert (checkout.root / "link").readlink() == Path("README.md")
    vcs.take_back(MAIN, ahead, start, "r1")
    assert checkout.git("status", "--porcelain") == ""
    assert (checkout.root / "dir" / "one").is_file()


def test_line_ends_are_written_as_the_user_wants_them(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """Filters of the user's settings apply to what lands, and a file that a filter changed is no change."""
    checkout.git("config", "core.autocrlf", "true")
    landed(checkout, vcs, ahead)
    assert (checkout.root / "new" / "file").read_bytes() == b"new\r\n"


@pytest.mark.parametrize(
    "name",
    [
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "rebase-merge/head-name",
        "rebase-apply/applying",
        "BISECT_START",
    ],
)
def test_what_is_under_way_in_the_checkout_is_finished_first(
    checkout: Checkout, vcs: Repository, ahead: CommitId, name: str
) -> None:
    """A merge, cherry-pick, revert, rebase, `git am` or bisection there refuses the landing."""
    path = checkout.root / ".git" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{vcs.resolve('main')}\n")
    assert "under way" in refused(checkout, vcs, MAIN, ahead).message
    with pytest.raises(LandingRefused) as caught:
        vcs.take_back(MAIN, vcs.resolve("main"), vcs.resolve("main~1"), "r1")
    assert caught.value.hint == "finish or abort it (see `git status` there), then undo again"


def test_a_branch_that_is_rebased_or_bisected_anywhere_is_left_alone(
    checkout: Checkout, vcs: Repository, ahead: CommitId, tmp_path: Path
) -> None:
    """HEAD is detached meanwhile, so that the branch seems to be checked out nowhere."""
    side, start = tmp_path / "side", vcs.resolve("main")
    checkout.git("worktree", "add", "-q", "-b", "topic", str(side))
    topic = RefName("refs/heads/topic")
    checkout.git("bisect", "start", cwd=side)
    checkout.git("checkout", "-q", "--detach", cwd=side)
    assert str(side) in refused(checkout, vcs, topic, ahead).message
    checkout.git("bisect", "reset", cwd=side)
    checkout.git("-c", "sequence.editor=sed -i 1i\\break", "rebase", "-q", "-i", "HEAD~1", cwd=side)
    assert "under way" in refused(checkout, vcs, topic, ahead).message
    checkout.git("rebase", "--abort", cwd=side)
    assert vcs.fast_forward(topic, ahead) == start


def test_a_branch_without_a_commit_that_is_checked_out_is_not_made(
    checkout: Checkout, vcs: Repository, ahead: CommitId
) -> None:
    """The files of that checkout would be taken for changes of the user's."""
    checkout.git("checkout", "-q", "--orphan", "fresh")
    assert "has no commit" in refused(checkout, vcs, RefName("refs/heads/fresh"), ahead).message


IN_THE_WAY: dict[str, Callable[[Checkout], object]] = {
    "README.md": lambda at: at.git("update-index", "--assume-unchanged", "README.md") or at.write("README.md", "x"),
    "README.md deleted": lambda at: (at.root / "README.md").unlink(),
    "README.md staged": lambda at: at.git("rm", "-q", "--cached", "README.md"),
    "new/file": lambda at: at.write("new/file", "mine\n"),
    "new/file ignored": lambda at: at.write(".git/info/exclude", "new/\n") and at.write("new/file", "mine\n"),
    "new": lambda at: (at.root / "new").symlink_to("src"),
    "new broken": lambda at: (at.root / "new").symlink_to("nowhere"),
    "dir": lambda at: at.write("dir/notes", "mine\n"),
    "dir ignored": lambda at: at.write(".git/info/exclude", "notes\n") and at.write("dir/notes", "mine\n"),
    "link": lambda at: (at.root / "link").symlink_to("elsewhere"),
    "tool": lambda at: os.mkfifo(at.root / "tool"),
    "swap": lambda at: at.write("swap", "edited\n"),
    "new/file added": lambda at: at.write("new/file", "mine\n") and at.git("add", "-N", "new/file"),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_whatever_of_the_users_is_in_the_way_is_named(
    checkout: Checkout, vcs: Repository, ahead: CommitId, case: str
) -> None:
    """Edits, deletions, links, pipes, ignored files, and files below a directory that would become a file."""
    IN_THE_WAY[case](checkout)
    assert case.split(maxsplit=1)[0] in refused(checkout, vcs, MAIN, ahead).details["paths"]
    no_remains(checkout)


def test_what_is_the_same_already_is_not_in_the_way(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """A file with the content that lands is nobody's loss, staged or not."""
    checkout.write("new/file", "new\n")
    checkout.write("README.md", "landed\n")
    checkout.git("add", "README.md")
    landed(checkout, vcs, ahead)


def test_a_sparse_checkout_stays_sparse(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """What it leaves out is not written; what it holds moves."""
    checkout.git("sparse-checkout", "set", "src")
    landed(checkout, vcs, ahead)
    assert not (checkout.root / "new").exists()
    assert (checkout.root / "README.md").read_text() == "landed\n"
    vcs.take_back(MAIN, ahead, vcs.resolve("main~1"), "r1")
    assert checkout.git("status", "--porcelain") == ""


def test_odd_names_move_as_any_other(checkout: Checkout, vcs: Repository) -> None:
    """Line breaks, quotes, and bytes that are no UTF-8; a file that is there already is compared under its odd name."""
    names = ["a\nb", '"quoted', os.fsdecode(b"caf\xe9"), "-dash", "sp ace"]
    start = vcs.resolve("main")
    for name in names:
        (checkout.root / name).write_text("new\n")
    new = CommitId(checkout.commit("odd"))
    checkout.git("reset", "-q", "--hard", start)
    for name in names[:3]:
        (checkout.root / name).write_text("new\n")
    landed(checkout, vcs, new)
    vcs.take_back(MAIN, new, start, "r1")
    assert not any((checkout.root / name).exists() for name in names)


def test_a_branch_that_goes_meanwhile_is_not_brought_back(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """It is deleted between the announcement and the move: the files are the old ones again, the branch stays gone."""
    before = everything(checkout)
    # Git runs the filter while it writes the files: this is the moment in between.
    checkout.git("config", "filter.thief.smudge", "rm -f .git/refs/heads/main; cat")
    checkout.write(".git/info/attributes", "new/file filter=thief\n")
    checkout.git("pack-refs", "--no-prune")
    (checkout.root / ".git" / "packed-refs").unlink()
    with pytest.raises(LandingRefused):
        vcs.fast_forward(MAIN, ahead)
    assert vcs.read_ref(MAIN) is None
    after = everything(checkout)
    assert {name: after[name] for name in before if name != "status"} == {
        name: before[name] for name in before if name != "status"
    }
    no_remains(checkout)


# Killed


@pytest.fixture
def many(checkout: Checkout, vcs: Repository) -> CommitId:
    """A commit that changes many files, adds and removes some, beside work of the user's elsewhere."""
    for number in range(_MANY):
        checkout.write(f"many/{number}", f"{number}\n")
    checkout.write("large", b"old" * 400_000)
    start = checkout.commit("many")
    for number in range(0, _MANY, 2):
        checkout.write(f"many/{number}", f"new {number}\n")
    checkout.git("rm", "-q", "many/1", "many/3")
    checkout.write("large", b"new" * 500_000)
    new = checkout.commit("ahead", **{"new/file": "new\n"})
    checkout.git("reset", "-q", "--hard", start)
    checkout.write("src/app.py", "the user's\n")
    checkout.write("src/lib.py", "staged\n")
    checkout.git("add", "src/lib.py")
    checkout.write("untracked", "the user's\n")
    return CommitId(new)


def _forked(act: Callable[[], object], kill_at: int) -> bool:
    """Acts in a child that is killed as it begins its so-manieth effect on files or processes; whether it was."""
    child = os.fork()
    if child == 0:
        left = [kill_at]

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
            if writes or event in ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "subprocess.Popen"):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            act()
        except LandingRefused:
            os._exit(4)
        except BaseException:  # noqa: BLE001 - a child of a test must not come back into it
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def _killed_everywhere(
    checkout: Checkout, folder: Path, act: Callable[[Repository], object], state: Path, stride: int
) -> int:
    """After a kill at each effect, the act done again ends as the undisturbed one; returns how often it was killed."""
    template = folder / "template"
    checkout.root.rename(template)
    shutil.copytree(template, checkout.root, symlinks=True)
    checkout.git("update-index", "-q", "--refresh", ok=(0, 1))
    act(Repository.discover(checkout.root, state))
    wanted = everything(checkout), checkout.git("rev-parse", "HEAD"), checkout.git("diff", "--cached")
    for kills, number in enumerate(range(1, 1000, stride)):
        shutil.rmtree(checkout.root)
        shutil.copytree(template, checkout.root, symlinks=True)
        checkout.git("update-index", "-q", "--refresh", ok=(0, 1))
        if not _forked(lambda: act(Repository.discover(checkout.root, state)), number):
            return kills
        act(Repository.discover(checkout.root, state))
        found = everything(checkout), checkout.git("rev-parse", "HEAD"), checkout.git("diff", "--cached")
        assert found == wanted, f"killed at effect {number}"
        no_remains(checkout)
    raise AssertionError("it never ended")


def _land(new: CommitId) -> Callable[[Repository], object]:
    def act(vcs: Repository) -> None:
        vcs.settle_landings()
        vcs.fast_forward(MAIN, new)

    return act


def _undo(new: CommitId, old: CommitId) -> Callable[[Repository], object]:
    def act(vcs: Repository) -> None:
        vcs.settle_landings()
        if vcs.read_ref(MAIN) == new:
            vcs.take_back(MAIN, new, old, "r1")

    return act


def test_a_landing_that_is_killed_is_landed_by_the_next_one(
    checkout: Checkout, vcs: Repository, many: CommitId, tmp_path: Path
) -> None:
    """The quick subset: every fifth effect of the process; the result is that of an undisturbed one."""
    assert _killed_everywhere(checkout, tmp_path, _land(many), tmp_path / "state", 5) > 3


def test_an_undo_that_is_killed_is_done_by_the_next_one(
    checkout: Checkout, vcs: Repository, many: CommitId, tmp_path: Path
) -> None:
    """The same on the way back."""
    start = vcs.resolve("main")
    vcs.fast_forward(MAIN, many)
    assert _killed_everywhere(checkout, tmp_path, _undo(many, start), tmp_path / "state", 5) > 3


@pytest.mark.sweep
@pytest.mark.parametrize("verb", ["land", "undo"])
def test_every_kill_of_a_landing_and_of_its_undo(
    checkout: Checkout, vcs: Repository, many: CommitId, tmp_path: Path, verb: str
) -> None:
    """All effects, one after the other."""
    start = vcs.resolve("main")
    if verb == "undo":
        vcs.fast_forward(MAIN, many)
    act = _land(many) if verb == "land" else _undo(many, start)
    assert _killed_everywhere(checkout, tmp_path, act, tmp_path / "state", 1) > 15


_LANDING = """
import sys
from pathlib import Path
from harness.vcs.repository import Repository
Repository.discover(Path(sys.argv[1]), Path(sys.argv[2])).fast_forward("refs/heads/main", sys.argv[3])
"""


@pytest.mark.parametrize("what", ["land", "take back", "leave"])
def test_a_landing_that_dies_while_git_writes_leaves_nothing_of_the_users_changed(
    checkout: Checkout, vcs: Repository, many: CommitId, tmp_path: Path, what: str
) -> None:
    """Process and git die together in the middle of the files: recognised, and landed, or taken back; edits since then stay."""
    before = everything(checkout)
    # The filter stops git in the middle of the files.
    checkout.git("config", "filter.stop.smudge", "touch .git/reached; sleep 1000; cat")
    checkout.write(".git/info/attributes", "many/98 filter=stop\n")
    landing = subprocess.Popen(
        [sys.executable, "-c", _LANDING, str(checkout.root), str(tmp_path / "state"), many],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    while not (checkout.root / ".git" / "reached").exists():
        assert landing.poll() is None
        os.sched_yield()
    os.killpg(landing.pid, signal.SIGKILL)
    landing.wait()
    checkout.git("config", "--unset", "filter.stop.smudge")
    assert (checkout.root / ".git" / "index.lock").exists()
    assert [left.new for _, left in vcs.unfinished_landings()] == [many]
    (checkout.root / "large").write_bytes(b"new" * 1000)  # as a kill inside of a write leaves it
    if what == "leave":
        checkout.write("many/0", "edited since\n")
    vcs.settle_landings()
    no_remains(checkout)
    after = everything(checkout)
    if what == "leave":
        assert after.pop("many/0") == b"edited since\n"
        assert "M many/0" in after.pop("status").decode().split("\n")[0]
        assert after.items() <= before.items()
        return
    assert after == before
    if what == "land":
        vcs.fast_forward(MAIN, many)
        assert checkout.git("diff", "HEAD", "--name-only").split() == ["src/app.py", "src/lib.py"]


def test_a_user_who_went_on_is_left_alone(checkout: Checkout, vcs: Repository, many: CommitId) -> None:
    """After a kill the user removed the lock and committed what was there: nothing of it is touched."""
    assert _forked(lambda: vcs.fast_forward(MAIN, many), 12)
    (checkout.root / ".git" / "index.lock").unlink(missing_ok=True)
    mine = checkout.commit("mine")
    before = everything(checkout)
    vcs.settle_landings()
    assert everything(checkout) == before
    assert vcs.read_ref(MAIN) == mine
    no_remains(checkout)
