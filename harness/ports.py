"""The seams: Protocols only. The engine sees these, never a concrete class."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from harness.model.late import dataclass

if TYPE_CHECKING:  # the CLI's quick commands need these seams, not pydantic behind the contract
    from asyncio import StreamReader, StreamWriter
    from contextlib import AbstractAsyncContextManager

    from harness.model.changes import Change, Merge, ParentDrift, Snapshot, Workspace, WorkspaceKind
    from harness.model.contract import Contract
    from harness.model.events import Envelope, Fact, Line, StepFact
    from harness.model.ids import CommitId, RefName, RunId, TreeId
    from harness.model.process import Means, ProcessIdentity, ProcessResult, ProcessSpec
    from harness.model.state import RunState
    from harness.model.verdict import Failure

Shape = TypeVar("Shape")


class Clock(Protocol):
    """Time as the harness sees it."""

    def now(self) -> datetime:
        """The current instant, in UTC."""

    def commit_time(self) -> int:
        """Seconds since the epoch for commits; fixed where the clock is fixed."""

    def sleep(self, seconds: float) -> None:
        """Returns after this long, whatever happens to the wall clock meanwhile."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a run: every append carries the epoch, and an older epoch is refused."""

    run_id: RunId
    epoch: int


class Store(Protocol):
    """Append-only log and projections. State = fold(log); rows are written in the same transaction."""

    def acquire(self, run_id: RunId, holder: Mapping[str, Any]) -> Lease:
        """A new epoch for this holder; raises Busy, naming the holder, while another one's lease is alive.

        Blocks for up to `LEASE_TTL_MS` where only a heartbeat that stays the same can show that the holder is gone.
        """

    def heartbeat(self, lease: Lease) -> None:
        """Keeps the lease alive; raises Fenced when a newer epoch exists."""

    def release(self, lease: Lease) -> None:
        """Gives the lease back; a no-op when it was lost."""

    def holder(self, run_id: RunId) -> Mapping[str, Any] | None:
        """Who holds the run, as far as one look can tell; None when nobody does or the lease seems to have run out."""

    def append(self, lease: Lease, facts: Sequence[Fact]) -> RunState:
        """All of these facts or none, durably if one announces an effect; returns the new state.

        Raises Fenced, IllegalTransition or StoreFailed.
        """

    def state(self, run_id: RunId) -> RunState:
        """The fold of the run's log; raises NotFound."""

    def events(self, run_id: RunId, after: int = 0) -> Iterator[Envelope]:
        """Envelopes in `seq` order, those after `after`."""

    def lines(self, run_id: RunId) -> Iterator[Line]:
        """The same from the beginning, as text for a file: nothing of it is parsed where that can be avoided."""

    def run_ids(self) -> list[RunId]:
        """Every run, oldest first."""

    def audit(self, run_id: RunId) -> list[str]:
        """Everything that does not verify: hash chain, gaps, rows that are not the fold; empty when intact."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AgentRights:
    """The least that lets `git commit` work in a workspace while the shared repository stays unwritable."""

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()


class Vcs(Protocol):
    """One repository. Calls block (they run git or read objects); the engine calls them from worker threads."""

    def resolve(self, revision: str) -> CommitId:
        """The commit that a revision names; raises UsageError."""

    def head_branch(self) -> RefName | None:
        """The branch that the user's checkout is on; None when HEAD is detached."""

    def read_ref(self, ref: RefName) -> CommitId | None: ...

    def move_ref(self, ref: RefName, new: CommitId, old: CommitId | None) -> None:
        """Compare-and-swap; `old` None means that the ref must not exist; raises RefMoved."""

    def delete_ref(self, ref: RefName, old: CommitId) -> None:
        """Deletes the ref if it still is at `old`; raises RefMoved."""

    def refs_under(self, prefix: str) -> dict[RefName, CommitId]: ...

    def unlock_run(self, run: RunId) -> None:
        """Removes the locks that a killed coordinator of this run left among its refs; one in use stays."""

    def tree_of(self, commit: CommitId) -> TreeId: ...

    def commit(self, tree: TreeId, parents: Sequence[CommitId], message: str, when: int) -> CommitId:
        """A commit object by the harness' identity; the same arguments give the same id."""

    def changes(self, old: CommitId, new: CommitId) -> tuple[Change, ...]:
        """Paths that differ between two commits, without rename detection, sorted."""

    def diff(self, old: CommitId, new: CommitId) -> bytes:
        """A unified diff for people."""

    def diff_lines(self, old: CommitId, new: CommitId) -> int:
        """How many lines were added and removed; a binary file counts as one."""

    def paths(self, commit: CommitId) -> tuple[str, ...]:
        """Every path in the tree of a commit, sorted."""

    def content(self, commit: CommitId, path: str) -> bytes | None:
        """A regular file of a commit; None where there is none, or one too large to be read by a person."""

    def merge(self, ours: CommitId, theirs: CommitId, base: CommitId) -> Merge:
        """The three-way merge that `git merge` would make with this base, attributes included; touches no checkout."""

    def with_file(self, tree: TreeId, path: str, content: bytes) -> TreeId:
        """The tree with one regular file added or replaced."""

    @property
    def workspace_kind(self) -> WorkspaceKind:
        """How workspaces are made, and why so."""

    def open_workspace(
        self, run: RunId, name: str, start: CommitId, branch: RefName | None, only: Sequence[str] | None = None
    ) -> Workspace:
        """A new worktree at `start`, on `branch` (created, or moved here when the harness made it) or detached.

        `only` makes it sparse: globs of what it holds besides the files at the top level.
        A half-made or left-over worktree of the same name is removed first; its work must have been kept.
        """

    def find_workspace(self, run: RunId, name: str) -> Workspace | None:
        """A workspace that an earlier coordinator made, if it is whole."""

    def workspace_path(self, run: RunId, name: str) -> Path:
        """Where `open_workspace` will make it; known before it is made, so that the intent can be logged."""

    def prepare(self, run: RunId, name: str, copy: Sequence[str], link: Sequence[str]) -> None:
        """Brings in what `.worktreeinclude`, the copy list and the link list name; never part of a snapshot."""

    def agent_rights(self, workspace: Workspace) -> AgentRights:
        """What git must be able to write when the agent commits inside a sandbox."""

    def snapshot(self, workspace: Workspace, message: str, when: int) -> Snapshot:
        """The files as they are, as a commit on the workspace's start point.

        What git refuses is `refused` and kept in another form; raises SnapshotFailed where the files could only be set aside.
        """

    def tracked(self, folder: str) -> frozenset[str]:
        """The paths below a folder of the user's checkout that git tracks there."""

    def remove_workspace(self, run: RunId, name: str) -> None:
        """Removes worktree and bookkeeping of this name, also half-made ones; never follows a link out of it."""

    def retire_workspace(self, run: RunId, name: str) -> None:
        """The same without waiting: it is no workspace any more, and its files are gone when the run is forgotten."""

    def forget_run(self, run: RunId) -> None:
        """Removes what is left of the run's private files; its workspaces first."""

    def workspaces(self) -> list[tuple[RunId, str, Path]]:
        """Every workspace on disk that belongs to this repository, also those of crashed runs."""

    def seal_parent(self, run: RunId) -> None:
        """Remembers hooks, config, attributes, refs, index and files of the parent as they are now."""

    def parent_drift(self, run: RunId) -> ParentDrift:
        """What changed in the parent since it was last sealed or asked, less what the harness did itself."""

    def fast_forward(self, branch: RefName, new: CommitId) -> CommitId | None:
        """Moves the branch, and the checkout that it is checked out in; returns where it was; raises LandingRefused."""

    def write_record(self, run: RunId, files: Mapping[str, bytes], when: int) -> CommitId:
        """The finished run as a commit under refs/orchestrix/runs/<run>."""

    def read_record(self, run: RunId) -> dict[str, bytes]:
        """The files of a record; raises NotFound."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A running program that is talked with: what it says, what it hears, and its log, which `note` adds to."""

    reader: StreamReader
    writer: StreamWriter
    note: Callable[[str], None]


Talk = Callable[[Channel], Awaitable[None]]
OnOutput = Callable[[bytes], None]


class Processes(Protocol):
    """The one door through which programs of a step run."""

    @property
    def name(self) -> str:
        """Which confinement this is: bwrap, subreaper."""

    @property
    def why(self) -> str:
        """Why it is this one, for people."""

    @property
    def protects_parent(self) -> bool:
        """Whether the parent repository is unwritable from inside."""

    def end_orphan(self, who: ProcessIdentity) -> bool:
        """Ends what is left of a dead coordinator's process tree; never a process that only reuses the pid."""

    async def run(
        self,
        spec: ProcessSpec,
        *,
        on_start: Callable[[ProcessIdentity], None],
        talk: Talk | None = None,
        on_output: OnOutput | None = None,
    ) -> ProcessResult:
        """Runs to the end of the whole process tree; cancelling the call ends the tree before it returns.

        With `talk` stdin and stdout belong to the conversation, and the tree is ended when `talk` returns.
        `on_output` hears what goes into the log, as it comes.
        """


class Tools(Protocol):
    """The broker: every call is checked against the contract first."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What the tool answered; raises ContractViolation when it is not allowed, ToolFailed when it did not work."""

    def offered(self) -> AbstractAsyncContextManager[Sequence[ToolOffer]]:
        """What a model may be offered, as long as the context is open."""


class Note(Protocol):
    """Logs a fact about the step; durable when it returns."""

    def __call__(self, kind: type[StepFact], **values: object) -> None: ...


def _nowhere(kind: type[StepFact], **values: object) -> None:
    """An attempt that is no part of a run has no log."""


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt, as an agent sees it."""

    contract: Contract
    attempt: int
    workspace: Path
    prompt: str
    env: Mapping[str, str]
    private: Path
    log: Path
    task: str = ""
    candidate: int = 1
    confined: bool = False
    previous_usage: Mapping[str, Any] = field(default_factory=dict)
    note: Note = _nowhere

    @property
    def step(self) -> str:
        """The path id of the step, for messages."""
        return self.task or str(self.contract.parent.step_idx)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an agent says of itself; the tree and the checks decide.

    With a `subplan` (the data of a plan file) the agent asks that the step be decomposed instead.
    """

    failure: Failure | None = None
    exit_code: int | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    subplan: Mapping[str, Any] | None = None


class Agent(Protocol):
    """A way to get work done."""

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:
        """Does the work in the workspace, or says why not."""


class Execute(Protocol):
    """Runs one program of this step: the engine adds rights, limits, log and events."""

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        purpose: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        means: Means | None = None,
    ) -> ProcessResult: ...

    async def talk(
        self,
        argv: Sequence[str],
        talk: Talk,
        *,
        purpose: str,
        env: Mapping[str, str] | None = None,
        means: Means | None = None,
        name: str | None = None,
    ) -> ProcessResult:
        """Runs a program and a conversation with it; the program is ended when the conversation is over.

        With a `name` it has a log of its own, so that other programs of the step may run meanwhile.
        """

    async def aside(
        self, argv: Sequence[str], *, name: str, on_output: OnOutput, env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        """Runs a program while another one of the step runs, with a log of its own."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost; `cost_usd` is None where no price is known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Both together; one unknown price makes the sum unknown."""
        known = [usage.cost_usd for usage in (self, other) if usage.calls]
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(cost for cost in known if cost is not None) if known and None not in known else None,
        )


@dataclass(frozen=True, slots=True)
class Answer(Generic[Shape]):
    """A model's answer, valid by its schema."""

    value: Shape
    usage: Usage
    model: str


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as a model sees it; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation: the user's, the model's with its calls, or a tool's answer to `call_id`."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model said next."""

    message: Message
    usage: Usage
    model: str


class Model(Protocol):
    """One language model. Raises ModelFailed; its `kind` says why."""

    @property
    def name(self) -> str:
        """Provider and model, as `openai:NAME`."""

    async def answer(
        self,
        system: str,
        prompt: str,
        shape: type[Shape],
        *,
        timeout_ms: int,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer[Shape]:
        """A value of this pydantic type; invalid output is sent back for repair a bounded number of times.

        With `on_text` the type has one field, the text `answer`: the model says it in plain words, which are told as they come.
        """

    async def converse(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolOffer],
        *,
        timeout_ms: int,
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        """The next turn of a conversation; `on_text` is told what the model says while it says it."""
