"""A fact as a line of the log: `seq` is gap-free for each run and `hash` covers the line and the hash before it.

An edited, removed or reordered line is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from harness.model.events import (
    acp,
    attempt,
    builtin,
    candidate,
    goal,
    nested,
    run,
    speculation,
    subagent,
    thinking,
    waiting,
    workflow,
)
from harness.model.events.fact import Fact
from harness.model.ids import RunId
from harness.model.late import dataclass
from harness.model.value import made

GENESIS = "0" * 64
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
_parsed = json.JSONDecoder().raw_decode
_SINGLE = frozenset({str, int, float, bool, type(None)})
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_FAMILIES = (run, subagent, attempt, speculation, candidate, acp, nested, thinking, builtin, goal, waiting, workflow)
TYPES: dict[str, type[Fact]] = {
    kind.type: kind
    for family in _FAMILIES
    for kind in vars(family).values()
    if isinstance(kind, type) and issubclass(kind, Fact) and "type" in vars(kind)
}


@dataclass(frozen=True)
class Envelope:
    """A sealed fact; field order is the order on the wire."""

    id: str
    run_id: str
    seq: int
    type: str
    ts: str
    task_id: str | None
    trace_id: str
    summary: str
    payload: dict[str, Any]
    prev_hash: str
    hash: str

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def fact(self) -> Fact | None:
        """The typed fact; None for a type that a newer version wrote."""
        cls = TYPES.get(self.type)
        if cls is None:
            return None
        if self.payload.keys() == cls.fields.keys():
            return made(cls, dict(self.payload))
        return cls(**{name: value for name, value in self.payload.items() if name in cls.fields})


class Line(NamedTuple):
    """An envelope as text: all of it, and its payload alone."""

    type: str
    payload: str
    text: str


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8.

    What UTF-8 cannot hold (half a surrogate pair, as in a file name of another encoding) is spelled out.
    """
    text = _ENCODER.encode(value)
    return text if text.isascii() else _SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)


def digest(envelope: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON of every field but `hash`."""
    body = {name: value for name, value in envelope.items() if name != "hash"}
    return _hashed(canonical(body))


def line_of(envelope: dict[str, Any]) -> Line:
    return Line(envelope["type"], canonical(envelope["payload"]), canonical(envelope))


def written_line(row: Mapping[str, Any]) -> Line | None:
    """The same of an envelope whose payload is still text, without reading that; None unless it is as it was hashed."""
    payload, found = row["payload"], row["hash"]
    text = _body(row, payload)
    return Line(row["type"], payload, f'{{"hash":"{found}",{text[1:]}') if _hashed(text) == found else None


def _body(fields: Mapping[str, Any], payload: str) -> str:
    """What `digest` hashes, put together from the text of the payload and the other fields in the order of their names.

    Names, times and hashes hold nothing that JSON would escape; where somebody wrote that into them, the hash differs.
    """
    task = fields["task_id"]
    return (
        f'{{"id":"{fields["id"]}","payload":{payload},"prev_hash":"{fields["prev_hash"]}",'
        f'"run_id":"{fields["run_id"]}","seq":{fields["seq"]},"summary":{canonical(fields["summary"])},'
        f'"task_id":{"null" if task is None else canonical(task)},"trace_id":"{fields["trace_id"]}",'
        f'"ts":"{fields["ts"]}","type":"{fields["type"]}"}}'
    )


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def seal(fact: Fact, *, run_id: RunId, seq: int, prev_hash: str, ts: str) -> Envelope:
    """The fact as the next line of the run's log; `payload` is what JSON gives back, so that hashes can be repeated."""
    return sealed(fact, run_id=run_id, seq=seq, prev_hash=prev_hash, ts=ts)[0]


def sealed(fact: Fact, *, run_id: RunId, seq: int, prev_hash: str, ts: str) -> tuple[Envelope, str]:
    """The same, and the text of the payload: it is encoded once, for the hash and for the row."""
    payload = fact.payload()
    text = canonical(payload)
    body: dict[str, Any] = {
        "id": f"{run_id}.{seq}",
        "run_id": str(run_id),
        "seq": seq,
        "type": fact.type,
        "ts": ts,
        "task_id": fact.task_id,
        "trace_id": _trace_id(run_id),
        "summary": _on_one_line(fact.summary),
        "payload": _read_back(payload, text),
        "prev_hash": prev_hash,
    }
    body["hash"] = _hashed(_body(body, text))
    return made(Envelope, body), text


def _on_one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if line.isascii() else _parsed(canonical(line))[0]


def _read_back(payload: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What JSON gives back for the payload that it made this text of.

    Most facts hold single values only: those come back as they went, without the text being read.
    """
    found: dict[str, Any] = {}
    for name, value in payload.items():
        if type(value) in _SINGLE:
            found[name] = value
        elif isinstance(value, str):
            found[name] = str.__str__(value)
        else:
            break
    return found if len(found) == len(payload) and text.isascii() else _parsed(text)[0]


@lru_cache(maxsize=64)
def _trace_id(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:32]


def verify(envelopes: list[Envelope]) -> list[str]:
    """Everything that is wrong with a run's log, as sentences; an empty list is an intact log."""
    problems: list[str] = []
    previous = GENESIS
    for expected, item in enumerate(envelopes, 1):
        if item.seq != expected:
            problems.append(f"seq {item.seq} stands where {expected} should: a line is missing or doubled")
            break
        if item.prev_hash != previous:
            problems.append(f"seq {item.seq}: does not follow the line before it")
        if digest(item.as_dict()) != item.hash:
            problems.append(f"seq {item.seq}: the line was changed after it was written")
        previous = item.hash
    return problems
