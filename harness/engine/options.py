"""What a run was asked to do; logged with the run, so that a resume does the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from harness.model import limits
from harness.model.late import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    jobs: int
    commit_time: int
    sandbox: str = "auto"
    workspace: str = "auto"
    reports: str = "local"
    keep: bool = False
    strict_parent: bool = False
    speculate: int = 0
    env_pass: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    backoff_base_ms: int = limits.BACKOFF_BASE_MS
    recoveries: int = limits.RECOVERIES
    replay: str = ""  # the digest of the recording that takes the agents' place
    errors: Mapping[str, str] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)  # max_depth, max_steps, max_reentry where they are set
    allowlists: Mapping[str, Any] = field(default_factory=dict)  # nodes by persona, where settings narrow them
    checkpoint_ms: int = limits.CHECKPOINT_MS
    personas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # caps, for the contracts
    planning: Mapping[str, Any] = field(default_factory=dict)  # of a run that begins with a goal: how it is planned

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Options:
        known: dict[str, Any] = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        lists: dict[str, tuple[str, ...]] = {
            name: tuple(known[name]) for name in ("env_pass", "copy", "link", "sparse") if name in known
        }
        return cls(**{**known, **lists})
