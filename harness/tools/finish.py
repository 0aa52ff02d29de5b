"""The tool that ends an attempt with an account of it."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from harness.model.plan import Text, Title
from harness.tools.tool import Arguments, Reach


class Met(Arguments):
    criterion: Title
    met: bool
    evidence: Text = ""


class Finish(Arguments):
    summary: Text
    status: Literal["done", "failed"] = "done"
    criteria: list[Met] = Field(default_factory=list)


async def finish(arguments: Finish, reach: Reach) -> str:
    """Writes the report; what it claims is read like any agent's account, and decides nothing."""
    front: dict[str, Any] = {"status": arguments.status, "criteria": [item.model_dump() for item in arguments.criteria]}
    if arguments.status == "failed":
        front["reason"] = arguments.summary[:500]
    lines = [f"{name}: {json.dumps(value, ensure_ascii=True)}" for name, value in front.items()]
    text = "\n".join(["---", *lines, "---", "", arguments.summary, ""])
    reach.inside.write(reach.contract.report_path, text.encode("utf-8", "replace"))
    return "finished"
