"""What agents may do. `get_tool_argument_schema` and `list_allowed_directories` tell about it; the broker enforces it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def get_tool_argument_schema(tool: str) -> dict[str, Any]:
    """The JSON Schema that the arguments of a tool must match; the broker refuses a call that does not.

    Raises NotFound for a name that is no tool of the harness: what an MCP server offers only the running server knows.
    """
    from harness.errors import NotFound  # noqa: PLC0415 - the package is imported by every run
    from harness.tools.table import TOOLS  # noqa: PLC0415 - as above

    if tool not in TOOLS:
        raise NotFound(f"there is no tool {tool!r:.100}", hint=f"the tools are {', '.join(TOOLS)}")
    return TOOLS[tool].arguments.model_json_schema()


def list_allowed_directories(workspace: Path | None = None) -> list[Path]:
    """Where file tools of a step reach in this workspace (by default the current directory): its own root, nothing else."""
    from harness.tools.inside import Inside  # noqa: PLC0415 - as above

    return [Inside(workspace or Path.cwd()).root]
