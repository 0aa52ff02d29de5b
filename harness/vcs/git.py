"""The one door to git: argument lists, bytes in and out, and nothing that a repository holds is ever executed."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from harness import namespace
from harness.errors import MACHINE_FAULTS, EnvironmentProblem, GitFailed
from harness.model.late import dataclass

TIMEOUT_S = 900
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
_descriptors = threading.Lock()
_CHUNK = 64 * 1024
_TOLD_LINES = 3
_PR_SET_PDEATHSIG = 1
_UNFINISHED = ("tmp_pack_", "tmp_obj_", "tmp_idx_")
_HARDENED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "core.askPass=",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "protocol.allow=never",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "merge.verifySignatures=false",
    "submodule.recurse=false",
    "diff.external=",
    "advice.addEmbeddedRepo=false",
    "advice.graftFileDeprecated=false",
)
# Twice the cores: while one worker waits for the disk another one unpacks.
_QUICK = (f"checkout.workers={2 * (os.cpu_count() or 1)}",)
_OPTIONS = tuple(word for setting in (*_HARDENED, *_QUICK) for word in ("-c", setting))
_FIXED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_NO_CONFIG = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
_MACHINE_FAULTS = tuple(os.strerror(number) for number in sorted(MACHINE_FAULTS))
_CONFIG_VARIABLES = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one git call gave back."""

    code: int
    out: bytes
    err: bytes

    @property
    def last_error(self) -> str:
        """The last line that says what went wrong."""
        if self.code < 0:
            return f"it was ended by signal {-self.code}"
        lines = self._lines
        causes = [number for number, line in enumerate(lines) if line.startswith(("fatal:", "error:"))]
        if not causes:
            said = [line for line in lines if not line.startswith("hint:")]  # git's advice is no cause
            return (said or [f"exit status {self.code}"])[-1]
        last = lines[causes[-1]]
        return " ".join([last, *lines[causes[-1] + 1 :]]) if last.endswith((":", " while including")) else last

    @property
    def all_errors(self) -> str:
        """Every line that says what went wrong: the first ones are often the cause of the last."""
        causes = [line for line in self._lines if line.startswith(("fatal:", "error:"))]
        return "; ".join(causes[-_TOLD_LINES:]) or self.last_error

    @property
    def machine_fault(self) -> str:
        """The line that names a fault of the machine; git goes on after some, and its answer is then not whole."""
        return next((line for line in self._lines if line.rstrip(".").endswith(_MACHINE_FAULTS)), "")

    @property
    def _lines(self) -> list[str]:
        return [line.strip() for line in text(self.err).splitlines() if line.strip()]

    def items(self) -> list[bytes]:
        """The NUL-terminated items of the output."""
        return self.out.split(b"\0")[:-1]


class Conversation:
    """One git that is asked and answers over pipes until it is ended."""

    def __init__(self, argv: list[str | bytes], env: Mapping[str, str], cwd: Path) -> None:
        self._process = subprocess.Popen(
            argv, env=env, cwd=cwd, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def say(self, data: bytes) -> None:
        """Raises OSError when nobody listens any more."""
        assert self._process.stdin is not None  # noqa: S101 - narrows the type; it is a pipe
        self._process.stdin.write(data)

    def hear(self, seconds: float) -> bytes:
        """What came by then, or nothing: it said nothing, or is gone."""
        assert self._process.stdout is not None  # noqa: S101 - as above
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return os.read(self._process.stdout.fileno(), _CHUNK) if ready else b""

    def end(self) -> None:
        self._process.kill()
        with suppress(OSError), self._process:
            pass  # waits for it and closes the pipes


class Errand:
    """One git that works by itself, says nothing, and dies with this process; when nobody knows it any more it is ended."""

    def __init__(self, argv: list[str | bytes], env: Mapping[str, str], cwd: Path, keeping: int) -> None:
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            pass_fds=(keeping,),
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - no other thread holds a lock
        )
        self.end = weakref.finalize(self, _end, self._process)

    def ends_well(self, seconds: float) -> bool:
        """Waits so long, and no longer."""
        try:
            return self._process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            self.end()
            return False


@dataclass(frozen=True, slots=True)
class Git:
    """Git against one explicit git dir; nothing is discovered and no `GIT_*` variable of the caller leaks in."""

    git_dir: Path
    work_tree: Path | None = None
    index: Path | None = None
    objects: Path | None = None
    alternate: Path | None = None
    user_config: bool = False

    def run(
        self, *args: str | bytes, stdin: bytes = b"", ok: Collection[int] = (0,), keeping: int | None = None
    ) -> Answer:
        """Runs git to its end; raises GitFailed, with git's own last line, for an exit status not in `ok`.

        Git holds the descriptor `keeping` while it runs, also when this process dies before it.
        """
        where = self.work_tree or self.git_dir
        answer = execute(self.argv(*args), env=self.environment(), cwd=where, stdin=stdin, keeping=keeping)
        return _checked(answer, args, ok)

    def begin(self, *args: str, keeping: int) -> Errand:
        """Git that nobody waits for yet; it holds the descriptor while it runs. For a process with one thread; raises OSError."""
        return Errand(self.argv(*args), self.environment(), self.work_tree or self.git_dir, keeping)

    def converse(self, unbuffered: str, *args: str) -> Conversation:
        """Git that answers while it runs; `unbuffered` is a program that takes its buffer away. Raises OSError."""
        return Conversation([unbuffered, "-o0", *self.argv(*args)], self.environment(), self.work_tree or self.git_dir)

    def porcelain(self, *args: str, ok: Collection[int] = (0,)) -> Answer:
        """The same through GitPython, for calls that serve people and are off the hot path."""
        try:  # it asks git for its version as it is imported
            from git.cmd import Git as Porcelain  # noqa: PLC0415 - a slow import that quick commands must not pay for
        except ImportError as error:
            raise GitFailed(f"git cannot be used: {error}", hint="see `orchestrix doctor`") from error

        # GitPython adds to the caller's environment and cannot take away from it.
        leaked = [word for name in os.environ if name.startswith("GIT_") for word in ("-u", name)]
        assigned = [f"{name}={value}" for name, value in self._variables().items()]
        code, out, err = Porcelain(self.work_tree or self.git_dir).execute(
            ["env", *leaked, *assigned, *self.argv(*args)],
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
        return _checked(Answer(code, out, err if isinstance(err, bytes) else err.encode()), args, ok)

    def argv(self, *args: str | bytes) -> list[str | bytes]:
        where: list[str | bytes] = [f"--git-dir={self.git_dir}"]
        if self.work_tree is not None:
            where.append(f"--work-tree={self.work_tree}")
            entering = namespace.entry(self.work_tree)
            if entering:  # which leads to `/` there
                return [*entering, "git", "-C", str(self.work_tree), *_OPTIONS, *where, *args]
        return ["git", *_OPTIONS, *where, *args]

    def environment(self) -> dict[str, str]:
        return scrubbed() | self._variables()

    def _variables(self) -> dict[str, str]:
        chosen = {
            "GIT_INDEX_FILE": self.index,
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": self.alternate,
            "GIT_CEILING_DIRECTORIES": (self.work_tree or self.git_dir).parent,
        }
        config = config_variables() if self.user_config else _NO_CONFIG
        return {**_FIXED, **config, **{name: str(path) for name, path in chosen.items() if path is not None}}


@contextmanager
def within(milliseconds: int) -> Iterator[None]:
    """Bounds all git calls of this thread in the block together; the one that is too late raises GitFailed, `overtime`."""
    token = _deadline.set(time.monotonic() + milliseconds / 1000)
    try:
        yield
    finally:
        _deadline.reset(token)


def check_time() -> float:
    """The seconds that are left; raises GitFailed when the time of the block is over."""
    deadline = _deadline.get()
    if deadline is None:
        return TIMEOUT_S
    left = deadline - time.monotonic()
    if left <= 0:
        raise _overtime()
    return min(left, TIMEOUT_S)


def _overtime() -> GitFailed:
    return GitFailed("git did not finish in time", hint="see the setting `git_timeout`", overtime=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _end_unfinished(process: subprocess.Popen[bytes]) -> None:
    """Also removes the objects that it was writing: git leaves them in the user's store until `git gc` finds them old."""
    unfinished: list[str] = []
    process.send_signal(signal.SIGSTOP)
    with suppress(OSError), os.scandir(f"/proc/{process.pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                unfinished.append(os.readlink(entry.path))  # noqa: PTH115 - a string of /proc
    _end(process)
    for path in unfinished:
        if os.path.basename(path).startswith(_UNFINISHED):  # noqa: PTH119 - as above
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - as above


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def scrubbed() -> dict[str, str]:
    """The caller's environment without any `GIT_*` variable."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def config_variables() -> dict[str, str]:
    """Where the caller says that the user's own git config is."""
    return {name: os.environ[name] for name in _CONFIG_VARIABLES if name in os.environ}


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Lets git open as many files at once as the system allows: it holds each folder open on its way into the next."""
    with _descriptors:  # the limit is the whole process': one caller must not lower it under another
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ask(*args: str, cwd: Path) -> Answer:
    """Git as the user would call it in a directory, hardened all the same; only to find and describe a repository."""
    env = scrubbed() | _FIXED | config_variables()
    return execute(["git", *_OPTIONS, *args], env=env, cwd=cwd)


def execute(
    argv: list[str | bytes], *, env: Mapping[str, str], cwd: Path, stdin: bytes = b"", keeping: int | None = None
) -> Answer:
    """Starts one process and waits for it; raises EnvironmentProblem when it cannot start, GitFailed when it hangs."""
    seconds = check_time()
    try:
        with subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if keeping is None else (keeping,),
        ) as process:
            try:
                out, err = process.communicate(stdin, seconds)
            except BaseException:
                _end_unfinished(process)
                raise
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise EnvironmentProblem(f"{cwd} is not a directory", hint="name an existing directory") from error
        raise EnvironmentProblem("git is not installed", hint="install git 2.38 or newer and put it on PATH") from error
    except subprocess.TimeoutExpired as error:
        if _deadline.get() is not None:
            raise _overtime() from error
        raise GitFailed(f"git did not finish within {TIMEOUT_S} seconds", hint="look for a stuck disk") from error
    except OSError as error:
        raise EnvironmentProblem(f"git cannot be started: {error.strerror}", hint="see `orchestrix doctor`") from error
    return Answer(process.returncode, out, err)


def _checked(answer: Answer, args: tuple[str | bytes, ...], ok: Collection[int]) -> Answer:
    fault = answer.machine_fault
    if fault or answer.code not in ok:
        raise GitFailed(
            f"git {os.fsdecode(args[2 if args[0] == '-c' else 0])} failed: {fault or answer.last_error}",
            hint="free space or descriptors, then resume" if fault else "see `orchestrix doctor`",
            exit_status=answer.code,
            machine=bool(fault) or answer.code < 0,
        )
    return answer


def text(raw: bytes) -> str:
    """A path or message of git for people: bytes that are no UTF-8 stay visible."""
    return raw.decode("utf-8", "backslashreplace")
