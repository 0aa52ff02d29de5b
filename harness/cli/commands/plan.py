"""`orchestrix plan`: a goal becomes a plan, for review."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json
from harness.cli.planning import Agents, Checks, ContextFile, Goal, MaxSteps

if TYPE_CHECKING:
    from harness.orchestrator.thinking.planner import Planned


def register(app: App) -> None:
    @app.command()
    def plan(
        goal: Goal,
        directory: Directory = None,
        to: Annotated[
            Path | None, Option("-o", "--output", metavar="FILE", help="Write the plan here (default: stdout).")
        ] = None,
        force: Annotated[bool, Option("--force", help="Replace FILE if it exists.")] = False,
        base: Annotated[str | None, Option(help="Plan for this revision (default: HEAD).")] = None,
        agent: Agents = None,
        check: Checks = None,
        max_steps: MaxSteps = None,
        context: ContextFile = None,
        as_json: Json = False,
    ) -> None:
        """Ask the configured model for a plan that reaches GOAL. Nothing is run.

        The plan is checked like any plan; review it, then `orchestrix run FILE`.
        """
        from harness.cli import planning as terms  # noqa: PLC0415 - loaded with the planner
        from harness.runs import planning  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        if to is not None:
            planning.refuse_taken(to, force=force)
        project = Project.at(options.here(directory))
        made = planning.plan(project, goal, terms.terms(agent, check, max_steps, context), base)
        if to is not None:
            planning.save(made, to, force=force)
        _told(made, to, as_json=as_json)


def _told(made: Planned, to: Path | None, *, as_json: bool) -> None:
    usage = made.usage
    if as_json:
        output.emit(
            {
                "path": str(to) if to else None,
                "plan": made.loaded.plan.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                "text": made.loaded.text,
                "partial": made.partial,
                "rounds": made.rounds,
                "waves": [list(wave) for wave in made.loaded.schedule.waves],
                "model": made.model,
                "usage": {
                    "calls": usage.calls,
                    "input_tokens": usage.input_tokens,
                    "output_tokens": usage.output_tokens,
                    "cost_usd": usage.cost_usd,
                },
            }
        )
        return
    if to is None:
        sys.stdout.write(made.loaded.text)
    steps = len(made.loaded.plan.steps)
    output.say(f"{steps} steps by {made.model} ({usage.input_tokens} + {usage.output_tokens} tokens)")
    if made.partial:
        output.say("the model says that more must be planned once these steps have results")
    if to is not None:
        output.say(f"next: read {to}, then orchestrix run {to}")
