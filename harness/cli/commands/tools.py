"""`orchestrix tools`: what agents may be allowed to do."""

from __future__ import annotations

from typing import Annotated, Any

from harness.cli import options, output
from harness.cli.declare import App, Argument
from harness.cli.options import Directory, Json

Name = Annotated[str | None, Argument(metavar="NAME", help="Show the schema of this tool's arguments.")]


def register(app: App) -> None:
    @app.command()
    def tools(name: Name = None, directory: Directory = None, as_json: Json = False) -> None:
        """List the tools that `allowed_tools` can name, or show what one of them takes."""
        from harness.config.setting_kinds import GUARDED_TOOLS  # noqa: PLC0415 - loaded when asked for
        from harness.tools import get_tool_argument_schema, list_allowed_directories  # noqa: PLC0415 - as above
        from harness.tools.permission import VIRTUAL  # noqa: PLC0415 - as above
        from harness.tools.table import TOOLS  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        def row(tool: str) -> dict[str, Any]:
            kind = "virtual" if tool in VIRTUAL else "guarded" if tool in GUARDED_TOOLS else "plain"
            return {"name": tool, "kind": kind, "description": TOOLS[tool].description}

        if name is not None:
            schema = get_tool_argument_schema(name)
            if as_json:
                output.emit({**row(name), "arguments": schema})
            else:
                output.line(output.as_json_text(schema, indent=2))
            return
        roots = [str(path) for path in list_allowed_directories(Project.at(options.here(directory)).root)]
        rows = [row(tool) for tool in TOOLS]
        if as_json:
            output.emit({"tools": rows, "allowed_directories": roots})
            return
        for each in rows:
            output.line(f"{each['name']:<12} {each['kind']:<8} {each['description']}")
        output.line(f"file tools reach a step's own worktree of {', '.join(roots)}, and nothing outside")
