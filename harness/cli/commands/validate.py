"""`orchestrix validate`: is the plan sound, and what will run together?"""

from __future__ import annotations

from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Argument
from harness.cli.options import Directory, Json
from harness.errors import Exit, PlanInvalid


def register(app: App) -> None:
    @app.command()
    def validate(
        plan: Annotated[str, Argument(metavar="PLAN", help="The plan file (YAML or JSON), or - for stdin.")],
        directory: Directory = None,
        as_json: Json = False,
    ) -> int:
        """Check PLAN and explain its graph: which steps run together, why others do not, the critical path."""
        from harness.model import graph  # noqa: PLC0415 - only when there is a plan to explain
        from harness.runs import plans  # noqa: PLC0415 - as above

        try:
            loaded = plans.load(plan, options.here(directory))
        except PlanInvalid as error:
            errors = error.details.get("errors", [])
            if as_json:
                output.failure(
                    error, as_json=True, data={"steps": [], "waves": [], "critical_path": [], "errors": errors}
                )
            else:
                for problem in errors:
                    output.say(_problem(problem))
            return Exit.USAGE
        plans.require_separate_installs(options.here(directory))
        found = loaded.schedule
        if as_json:
            output.emit(
                {
                    "steps": [
                        {
                            "idx": idx,
                            "id": step.id,
                            "title": step.title,
                            "needs": list(found.steps[idx].needs),
                            "implied_needs": list(found.steps[idx].implied_needs),
                        }
                        for idx, step in enumerate(loaded.plan.steps)
                    ],
                    "waves": [list(wave) for wave in found.waves],
                    "critical_path": list(found.critical_path),
                    "errors": [],
                }
            )
        else:
            for text in graph.explain(loaded.plan, found):
                output.line(text)
        return Exit.OK


def _problem(problem: dict[str, object]) -> str:
    place = f"{problem['file']}:{problem['line']}:{problem['column']}"
    field = f" {problem['field']}:" if problem.get("field") else ""
    hint = f" ({problem['suggestion']})" if problem.get("suggestion") else ""
    return f"{place}:{field} {problem['message']}{hint}"
