"""Reads what an agent program printed: JSON lines, one JSON document or plain text, folded into one value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.agents.profile import Document, Line, Output
from harness.model import limits
from harness.sandbox.redact import plain_text

_NUMBERS = frozenset({"cost_usd", "turns", "denied", "input_tokens", "output_tokens", "cached_tokens"})
_SCALES = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"\$?([\d,]*\.?\d+)\s*([kKmM]?)")
_SHOWN_CHARS = 500


class AgentOutput:
    """Grows line by line; what it was told last counts, or the sum where a rule adds."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._values: dict[str, Any] = {}
        self.ended = False
        self.failed = False
        self.error = ""

    def line(self, raw: bytes) -> bool:
        """Takes in one line; True when the program has told its result. Never raises: output is not to be trusted."""
        if not raw.lstrip().startswith(b"{"):
            return self._last(raw)
        try:
            event = json.loads(raw)
        except (ValueError, RecursionError):
            return False
        for rule in self._output.lines:
            if all(_one(event, place) == value for place, value in rule.when.items()):
                self._apply(event, rule, raw)
        return self.ended

    def _last(self, raw: bytes) -> bool:
        ends = self._output.ends
        return ends is not None and re.search(ends, plain_text(raw)) is not None

    def _apply(self, event: Any, rule: Line, raw: bytes) -> None:
        self._take(event, rule.take, adds=rule.adds)
        self.ended = self.ended or rule.ends
        wrong = any(re.search(pattern, str(_one(event, place))) for place, pattern in rule.fails_if.items())
        if rule.fails or wrong or (rule.ends and self._values.pop("failed", False)):
            self.failed = True
            # The words for people first; what a pattern looks for may stand beside them.
            self.error = f"{self._values.get('error', '')}\n{plain_text(raw)}"[: limits.OUTPUT_EXCERPT_CHARS]

    def document(self, text: str, rule: Document) -> None:
        """Takes in the JSON file that the program left; one that is none tells nothing."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return
        self._take(found, rule.take, adds=False)
        self.ended = True
        if any(_one(found, place) != value for place, value in rule.succeeded.items()):
            self.failed = True
            self.error = str(self._values.get("error", ""))

    def text(self, output: str, patterns: Sequence[str]) -> None:
        """Takes in the named groups of the last place that each pattern finds."""
        for pattern in patterns:
            found = list(re.finditer(pattern, output, re.MULTILINE))
            if found:
                self._keep({name: value for name, value in found[-1].groupdict().items() if value}, adds=False)
        if "error" in self._values and not self.ended:
            self.failed, self.error = True, str(self._values["error"])

    def _take(self, source: Any, places: Mapping[Any, str], *, adds: bool) -> None:
        self._keep({name: value for name, place in places.items() if (value := _all(source, place))}, adds=adds)

    def _keep(self, values: Mapping[str, Any], *, adds: bool) -> None:
        for name, found in values.items():
            if name in _NUMBERS:
                number = _sum(found)
                self._values[name] = _round(number + (self._values.get(name, 0) if adds else 0))
            else:
                self._values[name] = found[-1] if isinstance(found, list) else found

    @property
    def usage(self) -> dict[str, Any]:
        """What the report shows: numbers, and words that are bounded and harmless."""
        return {
            name: value if name in _NUMBERS else plain_text(str(value))[:_SHOWN_CHARS]
            for name, value in sorted(self._values.items())
            if name not in {"failed", "error"}
        }

    @property
    def session(self) -> str | None:
        found = self._values.get("session_id")
        return str(found) if found else None


def _all(source: Any, place: str) -> list[Any]:
    """Every value at a path of keys; `*` is every item of a list or a mapping; null and what is missing are left out."""
    found = [source]
    for key in place.split("."):
        found = [inner for value in found for inner in _inside(value, key)]
    return [value for value in found if value is not None]


def _one(source: Any, place: str) -> Any:
    found = _all(source, place)
    return found[0] if found else None


def _inside(value: Any, key: str) -> Iterator[Any]:
    if key == "*":
        yield from value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    elif isinstance(value, dict) and key in value:
        yield value[key]
    elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
        yield value[int(key)]


def _sum(found: Any) -> float:
    return sum(map(_number, found if isinstance(found, list) else [found]))


def _number(value: Any) -> float:
    """A number as programs write it: 12, "1.2k", "$0.01"; a list counts its items."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return value
    if isinstance(value, list):
        return len(value)
    found = _NUMBER.fullmatch(str(value).strip())
    return float(found[1].replace(",", "")) * _SCALES[found[2].lower()] if found else 0


def _round(number: float) -> float | int:
    return int(number) if float(number).is_integer() else round(number, 6)
