"""What importing costs: the package without langgraph, and an honest error where the extra is missing."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import harness.supervisor as package
assert not [name for name in sys.modules if name.split(".")[0] in {"langgraph", "langchain_core"}]
import harness.supervisor.diagram, harness.supervisor.locate, harness.supervisor.run_plan, harness.supervisor.validation
assert not [name for name in sys.modules if name.split(".")[0] in {"langgraph", "langchain_core"}]
sys.modules["langgraph"] = None
sys.modules["langchain_core"] = None
from harness.errors import EnvironmentProblem
try:
    package.build_graph_from_registry(package.NodeRegistry())
except EnvironmentProblem as error:
    print(error.hint)
"""


def test_importing_the_package_does_not_import_langgraph():
    """Only building a LangGraph graph needs the extra, and says how to get it."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "pip install 'orchestrix-harness[langgraph]'"
