"""Durations as people write them: `90s`, `15m`, `1h30m`, or a number of seconds."""

from __future__ import annotations

import re

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST_MS = 30 * 86_400_000


def parse_ms(value: str | float) -> int:
    """Milliseconds; raises ValueError with the accepted forms."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(  # noqa: TRY004 - pydantic turns ValueError into a placed error, TypeError into a crash
            "a duration is a number of seconds or text such as 90s, 15m, 1h30m"
        )
    if isinstance(value, int | float):
        milliseconds = value * 1_000
    else:
        text = value.strip().replace(" ", "")
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise ValueError(f"{value!r} is not a duration; write 90s, 15m, 1h30m or a number of seconds")
        milliseconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not 0 < milliseconds <= _LONGEST_MS:
        raise ValueError(f"{value!r} is out of range; a duration is more than 0 and at most 30d")
    return max(1, int(milliseconds))


def text(milliseconds: int) -> str:
    """The shortest form that a person reads at a glance."""
    if milliseconds < _UNITS["s"]:
        return f"{milliseconds}ms"
    if milliseconds < _UNITS["m"]:
        return f"{milliseconds / 1000:.1f}s"
    minutes, rest = divmod(milliseconds // 1000, 60)
    if minutes < 60:  # noqa: PLR2004 - minutes in an hour
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"
