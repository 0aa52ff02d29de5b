"""A run of a given plan needs no model, and loads nothing that only models need."""

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
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def test_a_plan_runs_without_any_library_of_models(bench: Workbench) -> None:
    """Neither their clients nor LangGraph."""
    command = [sys.executable, "-c", _LOADED, "run", str(bench.plan(write("x.txt", "x\n"))), "--sandbox", "none"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=bench.files, env=env, capture_output=True, text=True, check=True)
    heavy = {"acp", "anthropic", "httpx", "langgraph", "mcp", "openai", "opentelemetry", "pydantic_ai"}
    assert heavy & set(json.loads(done.stdout)) == set()
