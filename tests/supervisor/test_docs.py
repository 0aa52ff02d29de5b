"""The guide is executed: every Python block, in order, in one namespace."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import harness.supervisor

DOCS = Path(__file__).resolve().parents[2] / "docs" / "supervisor"


def test_every_block_of_the_guide_runs():
    """What a reader can copy works."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "guide.md").read_text(), re.DOTALL | re.MULTILINE)
    names = {"__name__": "guide"}

    async def run() -> None:
        for block in blocks:
            code = compile(block, "guide.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            made = eval(code, names)
            if inspect.isawaitable(made):
                await made

    asyncio.run(run())
    assert len(blocks) == 7


def test_the_reference_names_everything_public():
    """No public name is missing from the reference."""
    text = (DOCS / "reference.md").read_text()
    assert [name for name in harness.supervisor.__all__ if not re.search(rf"`[^`]*\b{name}\b", text)] == []
