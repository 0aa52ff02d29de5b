"""The composition root: settings become objects. The only file that knows every concrete class."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config import settings as settings_file
from harness.engine.clock import SystemClock
from harness.errors import EnvironmentProblem, NotFound, OrchestrixError, UsageError
from harness.model.ids import RunId
from harness.model.late import dataclass

if TYPE_CHECKING:
    from harness.agents.registry import Registry, Thinker
    from harness.config.mcp_file import Found as McpFile
    from harness.config.settings import Settings
    from harness.engine.parts import OnTool, Parts
    from harness.model.changes import WorkspaceKind
    from harness.model.contract import Contract
    from harness.models.access import Access
    from harness.ports import Agent, Execute, Model, Processes, Store, Tools
    from harness.vcs.installs import Lead
    from harness.vcs.repository import Repository

LOCAL = Path(".orchestrix") / "local"
_IGNORED = "/.gitignore\n/local/\n/step-*-result.md\n"


def locate(start: Path) -> Path:
    """The root of the checkout that `start` lies in; raises EnvironmentProblem."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    raise EnvironmentProblem(f"{start} is not inside a git checkout", hint="run `git init`, or give -C DIR")


@dataclass(frozen=True)
class Project:
    """One checkout and what belongs to it; every part is made when it is first asked for."""

    root: Path
    settings: Settings
    recording: Path | None = None
    hears: Callable[[str], None] | None = None  # a person who watches; told the final answer as it is given

    @classmethod
    def at(cls, start: Path, flags: Mapping[str, Any] | None = None) -> Project:
        root = locate(start)
        return cls(root, settings_file.load(root, flags or {}))

    @property
    def database(self) -> Path:
        return self.root / LOCAL / "state.db"

    @property
    def runs_dir(self) -> Path:
        return self.root / LOCAL / "runs"

    @cached_property
    def clock(self) -> SystemClock:
        return SystemClock()

    @cached_property
    def repository(self) -> Repository:
        from harness.vcs.repository import Repository  # noqa: PLC0415 - pygit2 is not needed to read the log

        found = Repository.discover(self.root, self.settings.state_home)
        found.git_ms = self.settings.git_timeout_ms
        return found

    @cached_property
    def processes(self) -> Processes:
        from harness.sandbox.choice import choose  # noqa: PLC0415 - probing costs a process

        return choose(self.settings.sandbox)

    def begin(self, start: str | None) -> None:
        """Starts what a run will ask for and other processes find out or make; whoever has other work first saves the time.

        `start` is where the run will probably begin; None when nothing may be made yet. What goes wrong is told later.
        """
        from harness.sandbox import choice  # noqa: PLC0415 - only a run needs it

        choice.begin(self.settings.sandbox)
        if start is not None:
            with suppress(OrchestrixError, OSError):
                self.require_own_state_home()
                repository = self.repository
                if self.workspaces.name == "overlay":
                    repository.begin(repository.resolve(start))

    @property
    def model_access(self) -> Access | None:
        """How the configured model is reached; None where none is configured."""
        from harness.models import access, choice  # noqa: PLC0415 - a plan without a model needs none of it

        settings = self.settings
        if settings.model_name is None:
            return None
        provider, name = choice.split(settings.model_name)
        return access.Access(
            provider,
            name,
            settings.model_base_url,
            access.key_from(os.environ, provider, settings.model_base_url),
            settings.model_structured,
        )

    @cached_property
    def model(self) -> Model:
        """The configured language model; raises EnvironmentProblem where there is none or its library is missing."""
        from harness.models import choice  # noqa: PLC0415 - as above

        access = self.model_access
        if access is None:
            raise EnvironmentProblem(
                "no language model is configured",
                hint="set ORCHESTRIX_MODEL to openai:NAME, anthropic:NAME or scripted:FILE",
            )
        return choice.make(access)

    @cached_property
    def store(self) -> Store:
        """The log, for writing; made if it is not there."""
        from harness.store.sqlite import SqliteStore  # noqa: PLC0415 - see `reading`

        try:
            self._prepare_local()
        except OSError as error:
            where = error.filename or self.database.parent
            raise EnvironmentProblem(
                f"{where} cannot be written: {error.strerror}", hint="the log lies there: make it yours to write"
            ) from error
        return SqliteStore(self.database, self.clock)

    @cached_property
    def reading(self) -> Store:
        """The log, for reading only; never creates or migrates anything."""
        from harness.store.sqlite import SqliteStore  # noqa: PLC0415 - sqlite is not needed by every command

        if not self.database.exists():
            raise NotFound("no run has been made here yet", hint="start one with `orchestrix run PLAN`")
        return SqliteStore.open_existing(self.database, self.clock)

    def _prepare_local(self) -> None:
        """Bookkeeping never shows in `git status`; a link in its place is refused, not followed."""
        folder = self.root / ".orchestrix"
        for path in (folder, folder / "local"):
            if path.is_symlink():
                raise EnvironmentProblem(f"{path} is a symbolic link", hint="the log must lie in the checkout itself")
            path.mkdir(0o700 if path.name == "local" else 0o777, exist_ok=True)
        _close(folder / "local")
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text(_IGNORED, encoding="utf-8")
        if not (folder / "local" / ".gitignore").exists():
            (folder / "local" / ".gitignore").write_text("*\n", encoding="utf-8")

    @cached_property
    def agents(self) -> Registry:
        """Every agent that a plan can name here; raises ConfigInvalid."""
        from harness.agents.profile_table import ProfileTable  # noqa: PLC0415 - only a run needs these
        from harness.agents.registry import Registry  # noqa: PLC0415 - as above

        folders = settings_file.profile_folders(self.root)
        table = ProfileTable(folders, self.settings.models, self.settings.resume_sessions)
        return Registry(self.settings.agents, table, self.settings.acp_agents, self._thinker())

    def _thinker(self) -> Thinker:
        """The built-in agent; its model, and the library behind it, are made when it is used."""
        from harness.agents.registry import Thinker  # noqa: PLC0415 - as above

        settings = self.settings

        def make() -> Agent:
            from harness.agents.builtin import Bounds, BuiltinAgent  # noqa: PLC0415 - most plans have another agent

            bounds = Bounds(
                settings.builtin_turns, settings.builtin_tokens, settings.builtin_context, settings.model_timeout_ms
            )
            return BuiltinAgent(lambda: self.model, bounds)

        missing = "" if settings.model_name else "no model is configured; set ORCHESTRIX_MODEL"
        return Thinker(make, settings.model_name or "", missing)

    @cached_property
    def _mcp(self) -> tuple[McpFile | None, str]:
        """The checkout's `.mcp.json` if the user trusts exactly that file, else why it is not used; never an error."""
        from harness.config import mcp_file  # noqa: PLC0415 - as above

        try:
            found = mcp_file.read(self.root)
        except OrchestrixError as error:
            return None, error.message
        if found is None:
            return None, f"there is no {mcp_file.NAME}"
        if not mcp_file.trusted(found, os.environ):
            return None, f"{mcp_file.NAME} is not trusted; see `orchestrix trust`"
        return found, f"{mcp_file.NAME} names no such server"

    def _tools(self, contract: Contract, workspace: Path, execute: Execute, on_tool: OnTool, *, step: str) -> Tools:
        """The broker; an agent that decides for itself is guarded beyond its contract."""
        from harness.config.setting_kinds import GUARDED_TOOLS  # noqa: PLC0415 - as above
        from harness.tools.broker import Broker, Guard, Remote  # noqa: PLC0415 - as above

        if contract.work.agent != "builtin":
            return Broker(contract, workspace, execute, on_tool, step=step)
        named = contract.permissions.allowed_tools
        enabled = set(self.settings.builtin_enable)
        if not enabled and set(GUARDED_TOOLS) & set(named) and self._mcp[0] is not None:
            enabled = self._mcp[0].enabled(os.environ) & set(GUARDED_TOOLS)
        guard = Guard(frozenset() if enabled else frozenset(GUARDED_TOOLS), owned_only=True)
        if not any(name.startswith("mcp:") for name in named):
            return Broker(contract, workspace, execute, on_tool, step=step, guard=guard)
        found, why = self._mcp
        servers = found.servers if found is not None else {}
        skipped = found.skipped if found is not None else {}
        remote = Remote(servers, skipped, why)
        return Broker(contract, workspace, execute, on_tool, step=step, guard=guard, remote=remote)

    @cached_property
    def shared_installs(self) -> Sequence[Lead]:
        """What workspaces get from the checkout that leads back to it: checks would test the checkout instead."""
        settings = self.settings
        if not (settings.workspace_copy or settings.workspace_link or (self.root / ".worktreeinclude").is_file()):
            return ()
        from harness.vcs import installs  # noqa: PLC0415 - most workspaces get nothing

        return installs.leads(self.root, settings.workspace_copy, settings.workspace_link)

    def require_separate_installs(self) -> None:
        """Raises SharedInstall, before anything is made, where a workspace would get the checkout's own packages."""
        if self.shared_installs:
            from harness.vcs import installs  # noqa: PLC0415 - loaded already

            installs.require_none(self.shared_installs)

    def require_own_state_home(self) -> None:
        """Raises EnvironmentProblem where another user could read or replace what runs keep."""
        from harness.vcs import places  # noqa: PLC0415 - only a run needs it

        places.require_own(self.settings.state_home)

    def parts(self) -> Parts:
        """Everything that the engine is given."""
        self.require_separate_installs()
        self.require_own_state_home()
        from harness.agents import prompt  # noqa: PLC0415 - only a run needs these
        from harness.engine.parts import Parts  # noqa: PLC0415 - as above
        from harness.orchestrator import drive  # noqa: PLC0415 - as above
        from harness.sandbox import environment  # noqa: PLC0415 - as above

        self.workspaces  # noqa: B018 - chosen before anything is made for the run
        return Parts(
            store=self.store,
            vcs=self.repository,
            processes=self.processes,
            clock=self.clock,
            agent=self.agents.agent if self.recording is None else self._replaying(self.recording),
            make_tools=self._tools,
            prompt=prompt.render,
            environment=lambda passed: environment.inherited(os.environ, passed),
            runs_dir=self.runs_dir,
            checkout=self.root,
            drive=drive.drive,
            close=drive.close,
            model=lambda: self.model if self.settings.model_name else None,
            model_timeout_ms=self.settings.model_timeout_ms,
            hears=self.hears,
        )

    def _replaying(self, path: Path) -> Callable[[str], Agent]:
        """A recording in the place of every agent."""
        from harness.agents.replay import ReplayAgent  # noqa: PLC0415 - only a replay needs it
        from harness.store.recording_file import RecordingFile  # noqa: PLC0415 - as above

        agent = ReplayAgent(RecordingFile.open(path), self.repository, self.store)
        return lambda _name: agent

    def recording_of(self, run_id: RunId) -> Path:
        """Where a run that replays keeps its recording."""
        return self.runs_dir / run_id / "replay.zip"

    @cached_property
    def workspaces(self) -> WorkspaceKind:
        """The kind of workspace that runs get here, and why."""
        against = ""
        if self.settings.keep:
            against = "workspaces that are kept must be plain files for everybody"
        elif not self.processes.protects_parent:
            against = "without a sandbox, a step could write to the checkout that all steps share"
        return self.repository.choose_workspaces(self.settings.workspace_kind, against)

    def as_begun(self, run_id: RunId) -> Project:
        """This project as when the run began, in confinement, kind of workspace and recording: a resume changes none."""
        options = self.reading.state(run_id).options
        sandbox = options.get("sandbox", self.settings.sandbox)
        workspace = options.get("workspace", self.settings.workspace_kind)
        keep = options.get("keep", self.settings.keep)
        settings = replace(self.settings, sandbox=sandbox, workspace_kind=workspace, keep=keep)
        return replace(self, settings=settings, recording=self.recording_of(run_id) if options.get("replay") else None)

    def find_run(self, name: str) -> RunId:
        """The run that a full id, an unambiguous prefix or `latest` names, also one known by its record alone."""
        known = self.reading.run_ids() if self.database.exists() else []
        if name == "latest":
            if not known:
                raise NotFound("no run has been made here yet", hint="start one with `orchestrix run PLAN`")
            return next((run for run in reversed(known) if self.reading.state(run).parent_run is None), known[-1])
        if name in known:
            return RunId(name)
        found = [run for run in (known + self.recorded()) if name and run.startswith(name)]
        if len(found) == 1 or name in found:
            return RunId(name) if name in found else found[0]
        if found:
            raise UsageError(f"{name!r} names {len(found)} runs", hint="give more of the id; see `orchestrix list`")
        raise NotFound(f"no run {name!r:.80} here", hint="see `orchestrix list`")

    def recorded(self) -> list[RunId]:
        """Runs that are here only as a record: they happened elsewhere and were fetched."""
        known = set(self.reading.run_ids()) if self.database.exists() else set()
        names = [ref.rsplit("/", 1)[-1] for ref in self.repository.refs_under("refs/orchestrix/runs/")]
        return [RunId(name) for name in sorted(names) if name not in known]

    def log(self, run_id: RunId) -> Store:
        """The log that holds this run: the database, or the run's record."""
        if self.database.exists() and run_id in self.reading.run_ids():
            return self.reading
        from harness.store.recorded import RecordedStore  # noqa: PLC0415 - only for runs that happened elsewhere

        return RecordedStore.from_jsonl(self.repository.read_record(run_id)["events.jsonl"].decode())

    def report(self, run_id: RunId, name: str) -> bytes | None:
        """A report of the run, from its folder or its record; None when there is none yet."""
        path = self.runs_dir / run_id / name
        if path.is_file():
            return path.read_bytes()
        return self.repository.read_record(run_id).get(f"reports/{name}") if run_id in self.recorded() else None


def _close(folder: Path) -> None:
    """Closes a folder of an earlier version, or of a careless umask, to everybody else."""
    found = folder.stat()
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        folder.chmod(0o700)


def holder() -> dict[str, Any]:
    """This process, as a lease names it."""
    from harness.store import identity  # noqa: PLC0415 - only a coordinator needs it

    return identity.this_process()
