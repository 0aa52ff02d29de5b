"""`orchestrix trust`: let the built-in agent use the MCP servers of this repository."""

from __future__ import annotations

import os
from typing import Annotated, Any

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json
from harness.errors import NotFound


def register(app: App) -> None:
    @app.command()
    def trust(
        directory: Directory = None,
        yes: Annotated[bool, Option("--yes", help="Trust this file, here, as it is now.")] = False,
        as_json: Json = False,
    ) -> None:
        """Show the MCP servers that `.mcp.json` names, and whether you trust them; any change of the file ends the trust."""
        from harness.config import mcp_file  # noqa: PLC0415 - loaded when asked for
        from harness.wiring import Project  # noqa: PLC0415 - as above

        found = mcp_file.read(Project.at(options.here(directory)).root)
        if found is None:
            raise NotFound(f"there is no {mcp_file.NAME} here", hint="see docs/how-to/use-a-model.md")
        if yes and not mcp_file.trusted(found, os.environ):
            mcp_file.trust(found, os.environ)
        trusted = mcp_file.trusted(found, os.environ)
        servers: list[dict[str, Any]] = [
            {"name": name, "command": [server.command, *server.args], "cwd": server.cwd}
            for name, server in sorted(found.servers.items())
        ]
        if as_json:
            enable = {name: list(tools) for name, tools in found.enable.items()}
            left = [{"name": name, "reason": reason} for name, reason in sorted(found.skipped.items())]
            output.emit(
                {"trusted": trusted, "digest": found.digest, "servers": servers, "skipped": left, "enable": enable}
            )
            return
        for server in servers:
            place = f" (in {server['cwd']})" if server["cwd"] else ""
            output.line(f"{server['name']:<12} {' '.join(server['command'])}{place}")
        for name, reason in sorted(found.skipped.items()):
            output.line(f"{name:<12} skipped: {reason}")
        for name, enabled in found.enable.items():
            output.line(f"enables {', '.join(enabled) or 'nothing'} in {'every environment' if name == '*' else name}")
        output.line(
            "trusted" if trusted else "not trusted: `orchestrix trust --yes` lets the built-in agent start them"
        )
