"""Metrics in the text format that Prometheus reads, one sample for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from harness.model.metrics import Metrics

_HELP = {
    "queue_length": "Tasks that wait to be started.",
    "active_tasks": "Tasks that were started and are not closed.",
    "failed_tasks": "Tasks with at least one failure.",
    "subagents_active": "Sub-agents with an attempt under way.",
    "average_task_latency": "Seconds from a task's start to its merge or failure, on average.",
}
_UNITS = {"average_task_latency": "_seconds"}


def text(samples: Sequence[tuple[Mapping[str, str], Metrics]]) -> str:
    """All samples, each with its labels; what was never measured has none."""
    return "".join(_family(field.name, samples) for field in fields(Metrics))


def _family(name: str, samples: Sequence[tuple[Mapping[str, str], Metrics]]) -> str:
    full = f"orchestrix_{name}{_UNITS.get(name, '')}"
    rows = [
        f"{full}{{{_labels(labels)}}} {value:g}\n"
        for labels, metrics in samples
        if (value := getattr(metrics, name)) is not None
    ]
    return f"# HELP {full} {_HELP[name]}\n# TYPE {full} gauge\n{''.join(rows)}"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
