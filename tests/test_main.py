"""The entry point: what it does before any command is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.workbench import ROOT

_PROGRAM = """
import sys
import harness.__main__ as entry
entry._refuse_plugins()
from pydantic.plugin._loader import get_plugins
print(list(get_plugins()), "importlib.metadata" in sys.modules)
from pydantic.plugin._loader import PYDANTIC_ENTRY_POINT_GROUP
print(PYDANTIC_ENTRY_POINT_GROUP, sys.modules["pydantic.plugin._loader"].__file__ is not None)
"""


@pytest.mark.parametrize(
    ("wish", "told"),
    [({}, "[] False\npydantic True"), ({"PYDANTIC_DISABLE_PLUGINS": "one"}, "[] True\npydantic True")],
)
def test_pydantic_looks_for_no_plugins_unless_a_person_wishes(wish: dict[str, str], told: str) -> None:
    """Its loader is not even read; whoever asks it for anything else gets the real one."""
    command = [sys.executable, "-c", _PROGRAM]
    env = {"PYTHONPATH": str(ROOT), "PATH": "", **wish}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    plugins, rest = done.stdout.strip().split("\n")
    assert f"{plugins if not wish else '[] ' + plugins.rsplit(' ', 1)[1]}\n{rest}" == told
