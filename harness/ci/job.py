"""One CI job: the run, its landing, and what is published of it however it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.ci import artifacts, outputs, page, runner_log, surroundings, trust
from harness.ci.result import Result, cases
from harness.ci.surroundings import Surroundings
from harness.config.plan_file import LoadedPlan
from harness.engine.journal import Watch
from harness.errors import EnvironmentProblem, Internal, OrchestrixError
from harness.model.events import Fact
from harness.model.ids import RunId
from harness.model.late import dataclass
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.runs import land as landing
from harness.runs import plans, start
from harness.wiring import LOCAL, Project


@dataclass(frozen=True, slots=True)
class Order:
    """What the job is asked to do."""

    plan: str
    directory: Path
    flags: Mapping[str, Any]
    overrides: start.RunOverrides
    land: bool
    artifacts: Path | None


@dataclass(slots=True)
class Job:
    """Knows as much as the job has come to; what is missing is not published."""

    order: Order
    around: Surroundings
    project: Project | None = None
    folder: Path | None = None
    loaded: LoadedPlan | None = None
    run_id: RunId | None = None

    def run(self, watch: Watch, ready: Callable[[Project], None]) -> Result:
        """To the end, with everything published; an error is part of the result, never raised, and so is a bug of ours."""
        error: OrchestrixError | None = None
        try:
            self._drive(watch, ready)
        except OrchestrixError as raised:
            error = raised
        except OSError:
            raise
        except Exception as bug:  # noqa: BLE001 - a bug of ours is published as one
            error = self._crashed(bug)
        return self._publish(error)

    def runner_log(self, result: Result) -> Iterator[str]:
        """Lines for a runner that obeys workflow commands."""
        root = self.project.root if self.project else None
        named = "" if self.order.plan == "-" else self.loaded.path if self.loaded else self.order.plan
        line_of = runner_log.step_lines(self.loaded.text) if self.loaded else (lambda _idx: None)
        return runner_log.render(result, named and self.around.shown(named, root), line_of)

    def _drive(self, watch: Watch, ready: Callable[[Project], None]) -> None:
        order = self.order
        self._claim(order.artifacts)
        project = self.project = Project.at(order.directory, order.flags)
        if self.folder is None:
            project.store.run_ids()  # an open log has made the folder, ignored by git and no link out of the checkout
            self._claim(project.root / LOCAL / "ci")
        self.loaded = plans.load(order.plan, order.directory)
        trust.require(project.root, project.settings.env_pass)
        wanted = start.request(project, self.loaded, order.overrides)
        ready(project)

        def note(fact: Fact, state: RunState) -> None:
            self.run_id = RunId(state.run_id)
            watch(fact, state)

        state = start.start(project, wanted, order.overrides, note)
        if order.land and state.status is RunStatus.SUCCEEDED:
            landing.land(project, RunId(state.run_id))

    def _claim(self, folder: Path | None) -> None:
        if folder is not None:
            artifacts.claim(folder)
            self.folder = folder

    def _crashed(self, bug: Exception) -> Internal:
        from harness.runs import crash  # noqa: PLC0415 - hopefully never

        return crash.report(bug, ("ci", self.order.plan), self.order.directory)

    def _publish(self, error: OrchestrixError | None) -> Result:
        """Each part on its own, so that one that fails does not take the others with it."""
        problems: list[OrchestrixError] = []
        result = Result(None, error)
        with self._collecting(problems, "the log"):
            result = self._read(error)
        folder = self.folder
        if folder is not None:
            with self._collecting(problems, str(folder)):
                self._archive(folder)
        with self._collecting(problems, "the step summary"):
            surroundings.append(self.around.step_summary, page.render(result))
        with self._collecting(problems, "the outputs"):
            named = outputs.values(result, str(folder) if folder else "")
            surroundings.append(self.around.outputs, outputs.render(named))
        result = result.without(problems)
        late: list[OrchestrixError] = []
        if folder is not None:
            with self._collecting(late, str(folder)):
                artifacts.write(folder, result)
        return result.without(late)

    def _read(self, error: OrchestrixError | None) -> Result:
        if self.project is None or self.run_id is None:
            return Result(None, error)
        state = self.project.store.state(self.run_id)
        archive = self.project.runs_dir / self.run_id
        tails = {
            step.task_id: artifacts.tail(archive / "logs" / f"step-{step.task_id}-attempt-{step.attempts}.log")
            for step in state.ordered()
        }
        return Result(state, error, cases(state, self.project.store.events(self.run_id), tails))

    def _archive(self, folder: Path) -> None:
        if self.loaded is not None:
            artifacts.write_plan(folder, self.loaded.path, self.loaded.text)
        if self.project is not None and self.run_id is not None:
            artifacts.write_events(folder, self.project.store.events(self.run_id))
            artifacts.copy_archive(folder, self.project.runs_dir / self.run_id)

    @contextmanager
    def _collecting(self, problems: list[OrchestrixError], what: str) -> Iterator[None]:
        try:
            yield
        except OrchestrixError as error:
            problems.append(error)
        except OSError as error:
            problems.append(
                EnvironmentProblem(
                    f"{what} could not be written: {error.strerror or error}",
                    hint="the run itself ended; see `orchestrix status`",
                )
            )
        except Exception as bug:  # noqa: BLE001 - as above
            problems.append(self._crashed(bug))
