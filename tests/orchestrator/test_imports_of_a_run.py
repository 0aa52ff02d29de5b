"""A run of a given plan needs no model and no parser of arguments, and loads nothing that only they need."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from support.workbench import ROOT, Workbench, write

_LOADED = """
import contextlib, json, os, sys
os._exit = sys.exit
from harness.__main__ import main
with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
    main()
print(json.dumps(sorted(sys.modules)))
"""


# What a plan of commands and actions can do without, from the first line to the last.
UNUSED = (
    "acp", "anthropic", "email", "git", "httpx", "importlib.metadata", "langgraph", "mcp", "openai", "opentelemetry",
    "pydantic_ai", "rich", "tomllib", "typer", "watchfiles", "yaml",
    "harness.agents.acp", "harness.agents.builtin", "harness.agents.cli", "harness.agents.profile",
    "harness.agents.replay", "harness.ci", "harness.cli.typed", "harness.config.complaints", "harness.config.mcp_file",
    "harness.config.plan_text", "harness.config.schema", "harness.config.yaml_tokens", "harness.model.exposition",
    "harness.model.metrics", "harness.model.recording", "harness.model.tracing", "harness.models",
    "harness.orchestrator.thinking.answers", "harness.orchestrator.thinking.asking",
    "harness.orchestrator.thinking.bounds", "harness.orchestrator.thinking.planner",
    "harness.orchestrator.thinking.prompts", "harness.orchestrator.thinking.repository_map", "harness.runs.nested",
    "harness.runs.otlp", "harness.runs.replay", "harness.supervisor",
    "harness.tools.mcp",
)  # fmt: skip


def test_a_plan_runs_without_what_it_does_not_use(bench: Workbench) -> None:
    """No clients of models, no LangGraph, no YAML for JSON, no Typer, no telemetry, and not the packages' metadata."""
    command = [sys.executable, "-c", _LOADED, "run", str(bench.plan(write("x.txt", "x\n"))), "--sandbox", "none"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=bench.files, env=env, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert {
        name for name in loaded if name.startswith(tuple(f"{unused}." for unused in UNUSED)) or name in UNUSED
    } == set()
    assert "harness.orchestrator.drive" in loaded
