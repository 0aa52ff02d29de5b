"""The personas of a run, with the caps that come with the harness and those that the user set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from harness.model.contract import Caps
from harness.model.personas import ERROR_FALLBACK, PARENT, PERFORM_TASK, PLANNER, RECOVERY, SUBAGENT, parse

__all__ = ["ERROR_FALLBACK", "PARENT", "PERFORM_TASK", "PLANNER", "RECOVERY", "SUBAGENT", "caps", "table"]


def table(overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Caps by persona: `personas.json`, where the user's settings say nothing else."""
    names = [*_defaults(), *(name for name in overrides if name not in _defaults())]
    return {name: {**_defaults().get(name, {}), **overrides.get(name, {})} for name in names}


def caps(contract_caps: Mapping[str, Caps], persona: str) -> Caps | None:
    """What the contract says; contracts of older runs say nothing, and the defaults hold."""
    given = contract_caps.get(persona)
    if given is None and not contract_caps and persona in _defaults():
        return Caps.model_validate(_defaults()[persona])
    return given


@cache
def _defaults() -> dict[str, dict[str, Any]]:
    return parse(json.loads(Path(__file__).with_name("personas.json").read_text(encoding="utf-8")))
