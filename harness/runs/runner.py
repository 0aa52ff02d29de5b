"""Runs for callers that have an event loop of their own: a supervisor that calls a plan as a subgraph."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.config import plan_file
from harness.config.plan_file import LoadedPlan
from harness.engine import launch
from harness.model import view
from harness.model.ids import RunId
from harness.runs import start
from harness.wiring import Project, holder


class EngineRunner:
    """A `plan_runner` service: runs a plan in one repository and answers with the data of `run --json`."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self._directory = directory
        self._settings = settings

    async def __call__(self, plan: str | Path | Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Called again with the `run_id` of a run that exists, it carries on with that run."""
        project = Project.at(self._directory.resolve(), self._settings)
        parts = project.parts()
        with contextlib.closing(parts.store):
            overrides = start.RunOverrides(**options)
            who = holder()
            if overrides.run_id is not None and overrides.run_id in parts.store.run_ids():
                state = parts.store.state(RunId(overrides.run_id))
                if not state.ended:
                    lease = parts.store.acquire(RunId(overrides.run_id), who)
                    state = await launch.carry_on(parts, lease, who, lambda _fact, _state: None)
            else:
                wanted = start.request(project, _load(plan), overrides)
                lease = parts.store.acquire(start.new_id(project, wanted, overrides), who)
                state = await launch.begin(parts, lease, wanted, who, lambda _fact, _state: None)
        return view.run(state, held=False)


def _load(plan: str | Path | Mapping[str, Any]) -> LoadedPlan:
    """A plan given as data takes the same road as a file: one set of rules, one kind of error."""
    if not isinstance(plan, Mapping):
        return plan_file.load(plan)
    with tempfile.TemporaryDirectory(prefix="orchestrix-plan-") as folder:
        path = Path(folder) / "plan.json"
        path.write_text(json.dumps(dict(plan)), encoding="utf-8")
        return plan_file.load(path)
