"""Prompts are versioned data files; every text that comes from outside is fenced when it is filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from harness.model.fence import fenced
from harness.model.late import dataclass
from harness.model.visible import visible

_SLOT = r"\{\{(\w+)\}\}"
_FILE = (  # compiled when a model is asked
    r"---\nname: (?P<name>\w+)\nversion: (?P<version>[1-9][0-9]*)\n---\n"
    r"# System\n(?P<system>.*)^# Prompt\n(?P<prompt>.*)\Z"
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a model is sent, and from which version of which file."""

    name: str
    version: int
    system: str
    prompt: str


def render(name: str, facts: Mapping[str, int | str], quoted: Mapping[str, str], *, repair: str = "") -> Rendered:
    """A prompt filled in one pass: `facts` are the harness' own words, `quoted` is text that came from elsewhere.

    `repair` is a rendered prompt that goes into the slot of that name.
    """
    version, system, prompt = _template(name)
    own = {slot: str(value) for slot, value in facts.items()}
    values = {slot: fenced(visible(text)) if text.strip() else "(none)" for slot, text in quoted.items()}
    values |= own | {"repair": f"\n{repair}" if repair else ""}
    return Rendered(name, version, _filled(system, values), _filled(prompt, values))


def _filled(template: str, values: Mapping[str, str]) -> str:
    return re.sub(_SLOT, lambda slot: values[slot[1]], template).strip() + "\n"


@cache
def _template(name: str) -> tuple[int, str, str]:
    from importlib import resources  # noqa: PLC0415 - as the patterns

    text = (resources.files("harness.orchestrator") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    found = re.fullmatch(_FILE, text, re.DOTALL | re.MULTILINE)
    if found is None or found["name"] != name:
        raise ValueError(f"the prompt file {name}.md has no header with its name and a version")
    return int(found["version"]), found["system"], found["prompt"]
