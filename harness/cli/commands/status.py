"""`orchestrix status`: where a run stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Run
from harness.model import usage

if TYPE_CHECKING:
    from harness.ports import Store


def register(app: App) -> None:
    @app.command()
    def status(run: Run = "latest", directory: Directory = None, as_json: Json = False) -> None:
        """Show where RUN stands."""
        from harness.model import view  # noqa: PLC0415 - loaded with the log
        from harness.runs import nested  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        log = project.log(run_id)
        holder = log.holder(run_id)
        data = view.run(log.state(run_id), held=holder is not None)
        data["holder"] = dict(holder) if holder else None
        top = nested.root(log, run_id)
        advice = view.next_step(log.state(top)) if data["waiting"] else f"orchestrix resume {top}"
        advice = advice if data["status"] in ("waiting", "cancelled") else f"orchestrix land {top}"
        if as_json:
            output.emit(data)
        else:
            _people(data, list(_rows(log, data)), advice)


def _rows(log: Store, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every step, those of its nested run after it, as far as their logs are here."""
    from harness.model import view  # noqa: PLC0415 - loaded with the log

    for step in data["steps"]:
        yield step
        if step["nested_run"] in log.run_ids():
            yield from _rows(log, view.run(log.state(step["nested_run"]), held=True))


def _people(data: dict[str, Any], steps: list[dict[str, Any]], advice: str) -> None:
    output.line(f"run {data['run_id']}: {data['status']}")
    if data["goal"].strip():
        output.line(f"goal: {' '.join(data['goal'].split())[:100]}")
    for step in steps:
        reason = f"  {step['close_reason']}" if step["close_reason"] else ""
        reason += f"  needs a decision: {step['message']}" if step["escalated"] else ""
        output.line(f"{step['task_id']:>4}  {step['state']:<18}{step['title']}{reason}")
        told = usage.sentence(step["usage"])
        if told:
            output.line(f"      {' '.join(filter(None, [step['usage'].get('model'), told]))}")
        if step["kept_ref"] and step["final_status"] == "failed":
            output.line(f"      work kept at {step['kept_ref']}")
    spent = usage.sentence(data["usage"])
    if spent:
        output.line(f"usage: {spent}")
    output.line(f"result: {data['head'][:12]} on {data['integration_ref']}")
    if data["waiting"]:
        output.line(f"waits: {data['waiting']}")
    unlanded = data["status"] == "succeeded" and data["landed"] != data["head"] and not data["parent_run"]
    if data["status"] in ("waiting", "cancelled") or unlanded:
        output.line(f"next: {advice}")
