"""Spans of a trace, and how they grow with a run's log."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace
from datetime import datetime

from harness.model.events import Envelope
from harness.model.late import dataclass

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """Times are nanoseconds since the epoch; `error` is a word for what went wrong, None when nothing did."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str | None
    start: int
    end: int
    attributes: dict[str, Scalar] = field(default_factory=dict)
    error: str | None = None
    message: str = ""


class Trace:
    """Spans by a key of the caller's; ids come from run and key, so that a trace that is sent twice is one trace.

    The spans of a nested run lie under a span of the run around it, and in its trace.
    """

    def __init__(self, above: Span | None = None) -> None:
        self._above = above
        self._spans: dict[str, Span] = {}
        self._open: set[str] = set()
        self._now = 0

    @property
    def spans(self) -> list[Span]:
        """All of them, in the order in which they began; what is still open ends with the last event."""
        ended = (replace(span, end=self._now) if key in self._open else span for key, span in self._spans.items())
        return sorted(ended, key=lambda span: (span.start, span.name, span.span_id))

    def at(self, envelope: Envelope) -> None:
        """Time moves on to this event."""
        self._now = nanoseconds(envelope.ts)

    def begin(
        self, key: str, name: str, envelope: Envelope, *, parent: str | None, attributes: dict[str, Scalar]
    ) -> None:
        self.add(key, name, envelope, parent=parent, milliseconds=0, attributes=attributes)
        self._open.add(key)

    def add(
        self,
        key: str,
        name: str,
        envelope: Envelope,
        *,
        parent: str | None,
        milliseconds: int,
        attributes: dict[str, Scalar],
    ) -> None:
        """A span that ends with this event, which alone tells about it."""
        above = self._spans.get(parent or "", self._above)
        digest = hashlib.sha256(f"{envelope.run_id}\0{key}".encode()).hexdigest()
        self._spans[key] = Span(
            name=name,
            trace_id=self._above.trace_id if self._above else envelope.trace_id,
            span_id=digest[:16],
            parent_id=above.span_id if above else None,
            start=self._now - milliseconds * 1_000_000,
            end=self._now,
            attributes=attributes,
        )

    def note(self, key: str, *, error: str | None, message: str, attributes: dict[str, Scalar]) -> None:
        """More about a span, and whether it went wrong; a later word replaces an earlier one."""
        span = self._spans[key]
        kept = {name: value for name, value in span.attributes.items() if name != "error.type"}
        wrong: dict[str, Scalar] = {} if error is None else {"error.type": error}
        self._spans[key] = replace(
            span, attributes=kept | attributes | wrong, error=error, message=message if error else ""
        )

    def end(
        self, key: str, *, error: str | None, message: str = "", attributes: dict[str, Scalar] | None = None
    ) -> None:
        """Ends an open span; of one that is not open nothing changes."""
        if key in self._open:
            self._open.discard(key)
            self.note(key, error=error, message=message, attributes=attributes or {})
            self._spans[key] = replace(self._spans[key], end=self._now)


def nanoseconds(ts: str) -> int:
    """A timestamp of the log, since the epoch."""
    moment = datetime.fromisoformat(ts)
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000
