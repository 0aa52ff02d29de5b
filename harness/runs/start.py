"""From a plan file to a finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.config.plan_file import LoadedPlan
from harness.engine import create, launch, signals
from harness.engine.journal import Watch
from harness.engine.options import Options
from harness.errors import Busy, EnvironmentProblem, UsageError
from harness.model import candidates, limits, nesting
from harness.model import contract as contracts
from harness.model.ids import CommitId, RefName, RunId, TaskId
from harness.model.late import dataclass
from harness.model.plan import Plan
from harness.model.state import RunState
from harness.model.supervision import BOUNDS
from harness.orchestrator import personas
from harness.runs import budgets, telemetry
from harness.wiring import Project, holder


@dataclass(frozen=True, slots=True)
class RunOverrides:
    """What the command line asked for beyond the settings."""

    base: str | None = None
    into: str | None = None
    run_id: str | None = None
    budget: Mapping[str, int | float] = field(default_factory=dict)


def request(project: Project, loaded: LoadedPlan, overrides: RunOverrides) -> create.Request:
    """The request, resolved against the repository; raises before anything is made."""
    found = base(project, loaded.plan.base, overrides)
    if project.recording is None:
        _agents_exist(project, loaded)
    branch = target(project, overrides)
    plan = _with_defaults(project, loaded.plan)
    replayed = _replayed(project, plan)
    return create.Request(
        plan=plan,
        schedule=loaded.schedule,
        plan_path=loaded.path if loaded.path == "-" else str(Path(loaded.path).resolve()),
        plan_digest=loaded.digest,
        base=found,
        target=branch,
        target_at=project.repository.read_ref(branch) if branch else None,
        options=replace(options(project, loaded.plan.budget.as_dict(), overrides), replay=replayed),
    )


def _with_defaults(project: Project, plan: Plan) -> Plan:
    """The plan with the time and retries that the settings give to steps for which it says none."""
    settings, defaults = project.settings, plan.defaults
    given: dict[str, Any] = {}
    if defaults.timeout is None and settings.timeout_ms != limits.ATTEMPT_TIMEOUT_MS:
        given["timeout"] = settings.timeout_ms
    if defaults.retries is None and settings.retries != limits.MAX_RETRIES:
        given["retries"] = settings.retries
    return plan.model_copy(update={"defaults": defaults.model_copy(update=given)}) if given else plan


def _replayed(project: Project, plan: Plan) -> str:
    """The digest of the recording that takes the agents' place; empty where none does."""
    if project.recording is None:
        return ""
    from harness.runs import replay  # noqa: PLC0415 - only a replay pays for it

    return replay.fitting(project.recording, plan, personas.table(project.settings.personas))


def options(
    project: Project, budget: budgets.Amounts, overrides: RunOverrides, planning: Mapping[str, Any] | None = None
) -> Options:
    """What binds the run from here on, by settings and overrides; `budget` is the plan's own; raises SharedInstall."""
    project.require_separate_installs()
    project.require_own_state_home()
    settings = project.settings
    allowed = budgets.effective(budget, settings.budget, overrides.budget)
    return Options(
        jobs=settings.parallel,
        commit_time=project.clock.commit_time(),
        sandbox=settings.sandbox,
        workspace=settings.workspace_kind,
        reports=settings.reports,
        keep=settings.keep,
        strict_parent=settings.strict_parent,
        speculate=settings.speculate,
        env_pass=tuple(settings.env_pass),
        copy=tuple(settings.workspace_copy),
        link=tuple(settings.workspace_link),
        sparse=tuple(settings.workspace_sparse),
        backoff_base_ms=settings.backoff_base_ms,
        recoveries=settings.recoveries,
        errors=dict(settings.errors),
        budget={name: amount for name, amount in allowed.items() if name not in BOUNDS},
        bounds={name: int(amount) for name, amount in allowed.items() if name in BOUNDS},
        allowlists=dict(settings.allowlists),
        checkpoint_ms=settings.checkpoint_every_ms,
        personas=personas.table(settings.personas),
        planning=planning or {},
    )


def target(project: Project, overrides: RunOverrides) -> RefName | None:
    """The branch to land on."""
    return RefName.branch(overrides.into) if overrides.into else project.repository.head_branch()


def base(project: Project, planned: str | None, overrides: RunOverrides) -> CommitId:
    """--base, then the plan's base, then the branch to land on, then HEAD."""
    vcs = project.repository
    vcs.check_supported()
    named = overrides.base or planned
    if named:
        return vcs.resolve(named)
    if overrides.into:
        at = vcs.read_ref(RefName.branch(overrides.into))
        if at is not None:
            return at
    return vcs.resolve("HEAD")


def _agents_exist(project: Project, loaded: LoadedPlan) -> None:
    known = project.agents
    for idx, name in _agents(loaded.plan):
        found = known.available(name)
        if not found.usable:
            raise EnvironmentProblem(
                f"step {idx} wants agent {name!r}, which is not available: {found.detail}",
                hint=f"see `orchestrix agents`; known are {', '.join(known.names)}",
            )


def _agents(plan: Plan, parent: TaskId | None = None) -> Iterator[tuple[TaskId, str]]:
    """Path id and agent of every step, nested ones included."""
    for idx, step in enumerate(plan.steps):
        task = nesting.task_id(parent, idx)
        if step.steps is None:
            alone = contracts.agent_of(contracts.with_defaults(plan, step))
            yield from ((task, name) for name in candidates.of(plan, step) or (alone,))
        else:
            yield from _agents(Plan.model_validate(nesting.plan(plan, step)), task)


def start(project: Project, wanted: create.Request, overrides: RunOverrides, watch: Watch) -> RunState:
    """Runs the plan to its end; raises Interrupted on a signal, with the run left resumable."""
    project.workspaces  # noqa: B018 - what cannot be had is told before the run exists
    run_id = new_id(project, wanted, overrides)
    who = holder()
    lease = project.store.acquire(run_id, who)
    try:
        project.repository.warm(run_id, wanted.base)
        parts = project.parts()
    except BaseException:
        project.store.release(lease)
        raise
    if project.recording is not None:
        from harness.runs import replay  # noqa: PLC0415 - as above

        replay.adopt(project.recording, project.recording_of(run_id))
    with telemetry.observing(project, watch) as observed:
        return signals.run(launch.begin(parts, lease, wanted, who, observed))


def new_id(project: Project, wanted: create.Request, overrides: RunOverrides) -> RunId:
    known = set(project.store.run_ids())
    if overrides.run_id is not None:
        if len(overrides.run_id) > limits.RUN_ID_CHARS:
            raise UsageError(
                f"{overrides.run_id!r:.80} is too long for a run id", hint=f"at most {limits.RUN_ID_CHARS} characters"
            )
        if overrides.run_id in known:
            driver = project.store.holder(RunId(overrides.run_id))
            if driver is not None:
                raise Busy(
                    f"run {overrides.run_id} is held by process {driver.get('pid')} on {driver.get('host')}",
                    hint="wait for it, or cancel it with `orchestrix cancel`",
                    run_id=overrides.run_id,
                    holder=dict(driver),
                )
            raise UsageError(f"run {overrides.run_id} exists already", hint="`orchestrix resume` carries on with a run")
        return RunId(overrides.run_id)
    clock = project.clock
    now = datetime.fromtimestamp(clock.commit_time(), UTC) if clock.fixed else clock.now()
    first = create.new_run_id(now, wanted, fixed=clock.fixed)
    return next(
        candidate
        for number in range(1, len(known) + 2)
        if (candidate := first if number == 1 else RunId(f"{first}-{number}")) not in known
    )
