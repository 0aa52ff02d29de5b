"""Checks on an exact tree, measured against the base's own result."""

from __future__ import annotations

from harness.checks import judge
from harness.engine import workspaces
from harness.engine.context import Context
from harness.engine.execute import StepExecute
from harness.engine.trial import Trial
from harness.errors import EnvironmentProblem
from harness.model import events as ev
from harness.model import limits
from harness.model.changes import Workspace
from harness.model.contract import ContractCheck
from harness.model.ids import CommitId, TaskId
from harness.model.verdict import Failure, Reason


async def setup(execute: StepExecute) -> Failure | None:
    """Runs the step's setup commands; the first that fails, fails the step."""
    for command in execute.contract.work.setup:
        result = await execute(judge.argv(command), purpose="setup")
        if not result.ok:
            said = result.message or f"exit {result.exit_code}"
            return Failure(
                Reason.SETUP_FAILED,
                f"setup `{judge.shown(command)}` failed: {said}\n{_tail(result.output_tail)}".strip(),
            )
    return None


async def checks(execute: StepExecute, tree: str, where: str) -> Failure | None:
    """Runs the step's checks here and judges them."""
    results = await judge.run(execute.contract.checks, execute)
    return await verdict(execute.ctx, execute.task, Trial(None, tuple(results)), tree, where)


async def verdict(ctx: Context, task: TaskId, trial: Trial, tree: str, where: str) -> Failure | None:
    """Logs what each check showed on `tree`; a check that may fail on the base does not block if it does."""
    failed: list[str] = []
    reason = Reason.CRITERION_FAILED
    for result in trial.results:
        failed_on_base = None if result.ok else await _fails_on_base(ctx, task, result.check)
        ctx.note(
            task,
            ev.CheckFinished,
            command=result.check.command,
            where=where,
            tree=tree,
            ok=result.ok,
            exit_code=result.process.exit_code,
            duration_ms=result.process.duration_ms,
            output_tail=_tail(result.process.output_tail),
            failed_on_base=failed_on_base,
        )
        if not result.ok and not (result.check.may_fail_on_base and failed_on_base):
            also = " (it fails on the base commit too)" if failed_on_base else ""
            failed.append(f"`{judge.shown(result.check.command)}` {result.cause}{also}")
            reason = reason if result.check.criterion else Reason.CHECK_FAILED
    if not failed:
        return trial.setup
    return Failure(reason, f"checks failed on the {where} tree: {'; '.join(failed)}")


async def checks_apart(ctx: Context, task: TaskId, commit: CommitId, tree: str, purpose: str) -> Failure | None:
    """The step's checks on its snapshot, in a workspace of their own that leaves nothing out."""
    return await verdict(ctx, task, await trial(ctx, task, commit, purpose), tree, "workspace")


def wanted(ctx: Context, task: TaskId, tree: str) -> bool:
    """Whether the merged tree has yet to be checked: not without checks, and not if they passed on this very tree."""
    return bool(ctx.contract(task).checks) and tree != ctx.step(task).tree


async def merged_tree(ctx: Context, task: TaskId, commit: CommitId, tree: str, ahead: Trial | None) -> Failure | None:
    """The gate: the verdict on a trial of exactly the merged tree, made `ahead` of the step's turn or now."""
    if not wanted(ctx, task, tree):
        return None
    if ahead is None:
        async with ctx.gates:
            ahead = await trial(ctx, task, commit, "gate")
    return await verdict(ctx, task, ahead, tree, "merged")


async def trial(ctx: Context, task: TaskId, commit: CommitId, purpose: str, only: ContractCheck | None = None) -> Trial:
    """Setup and checks in a workspace that holds exactly this commit; what they showed is logged by the verdict."""
    async with workspaces.temporary(ctx, task, commit, purpose) as workspace:
        execute = _execute(ctx, task, workspace, purpose)
        wanted = execute.contract.checks if only is None else (only,)
        try:
            failure = await setup(execute)
            results = [] if failure else await judge.run(wanted, execute)
        except (EnvironmentProblem, OSError) as error:
            if not workspaces.vanished(workspace.path, error):
                raise
            words = f"the workspace for the checks of step {task} was removed or replaced: they could not run"
            return Trial(Failure(Reason.CHECK_FAILED, words))
        return Trial(failure, tuple(results))


async def _fails_on_base(ctx: Context, task: TaskId, check: ContractCheck) -> bool:
    key = judge.shown(check.command)
    async with ctx.base_locks[task]:  # candidates of one step would share the workspace
        if key not in ctx.base_checks:
            on_base = await trial(ctx, task, ctx.base, "base", check)
            if on_base.setup is not None:
                return on_base.setup.reason is Reason.SETUP_FAILED  # else nothing is known, and nothing is excused
            ctx.base_checks[key] = on_base.results[0].ok
    return not ctx.base_checks[key]


def _execute(ctx: Context, task: TaskId, workspace: Workspace, purpose: str) -> StepExecute:
    attempt = max(1, ctx.step(task).attempts)  # a nested run's result is judged without one
    return StepExecute(ctx, task, attempt, workspace, ctx.contract(task), f"step-{task}-{purpose}")


def _tail(text: str) -> str:
    return text[-limits.OUTPUT_EXCERPT_CHARS :]
