"""`orchestrix metrics` and `orchestrix trace`: a run in numbers and times, for dashboards."""

from __future__ import annotations

import json

from support.workbench import Workbench, shell, write

from tests.runs.test_otlp import collecting


def _ran(bench: Workbench) -> str:
    done = bench.run(write("a.txt", "two\n"), shell("exit 3", owns=["b.txt"], title="Break"))
    assert done.code == 1
    return done.data["run_id"]


def test_a_runs_metrics_are_text_for_prometheus(bench: Workbench) -> None:
    """Labels name the run; the latency is measured."""
    run_id = _ran(bench)
    text = bench.call("metrics").out
    labels = f'{{run_id="{run_id}",status="failed"}}'
    for line in (
        f"orchestrix_queue_length{labels} 0",
        f"orchestrix_active_tasks{labels} 0",
        f"orchestrix_failed_tasks{labels} 1",
        f"orchestrix_subagents_active{labels} 0",
    ):
        assert f"{line}\n" in text
    latency = text.rsplit(" ", 1)[1]
    assert float(latency) > 0


def test_metrics_go_to_a_file_and_to_machines(bench: Workbench) -> None:
    """The file is replaced; `--all` has every run."""
    first, second = _ran(bench), _ran(bench)
    target = bench.root / "collected" / "orchestrix.prom"
    assert bench.call("metrics", "-o", str(target)).code == 0
    assert bench.call("metrics", "--all", "-o", str(target)).code == 0
    assert all(f'run_id="{run_id}"' in target.read_text() for run_id in (first, second))
    assert list(target.parent.iterdir()) == [target]
    runs = bench.call("metrics", "--all", "--json").data["runs"]
    assert [(run["run_id"], run["failed_tasks"]) for run in runs] == [(first, 1), (second, 1)]


def test_a_trace_shows_where_the_time_went(bench: Workbench) -> None:
    """A tree for people, spans for machines."""
    _ran(bench)
    lines = [line.split("s  ", 1)[1] for line in bench.call("trace").out.splitlines()]
    assert lines[0].startswith("run ")
    assert sorted(line.strip() for line in lines[1:]) == [
        "execute_tool write_file",
        "invoke_agent actions",
        "invoke_agent command  agent_failed",
        "step 0",
        "step 1  agent_failed",
    ]
    assert "  step 0" in lines
    assert "    invoke_agent actions" in lines
    data = bench.call("trace", "--json").data
    assert {span["name"] for span in data["spans"]} >= {"step 0", "step 1", "invoke_agent actions"}


def test_a_trace_is_sent_to_a_collector(bench: Workbench) -> None:
    """Over HTTP on this machine; the same run twice is the same bytes."""
    _ran(bench)
    with collecting() as collector:
        done = bench.call("trace", "--otlp", collector.url)
        bench.call("trace", "--otlp", collector.url)
    assert (done.code, done.out) == (0, f"6 spans sent to {collector.url}\n")
    assert collector.requests[0] == collector.requests[1]


def test_a_run_keeps_a_metrics_file_and_sends_its_trace_when_settings_say_so(bench: Workbench, monkeypatch) -> None:
    """Off by default; on, the file ends with the run's outcome and the collector has the run's spans."""
    target = bench.root / "orchestrix.prom"
    with collecting() as collector:
        monkeypatch.setenv("ORCHESTRIX_TELEMETRY_METRICS_FILE", str(target))
        monkeypatch.setenv("ORCHESTRIX_TELEMETRY_OTLP", collector.url)
        run_id = _ran(bench)
        bench.call("trace", "--otlp", collector.url)
    assert f'orchestrix_failed_tasks{{run_id="{run_id}",status="failed"}} 1\n' in target.read_text()
    sent, again = collector.requests
    assert sent == again


def test_a_collector_that_fails_does_not_fail_the_run(bench: Workbench, monkeypatch, caplog) -> None:
    """It is said, and the outcome stays the run's own."""
    with collecting(status=400) as collector:
        monkeypatch.setenv("ORCHESTRIX_TELEMETRY_OTLP", collector.url)
        done = bench.run(write("a.txt", "two\n"))
    assert done.code == 0
    assert f"the trace of run {done.data['run_id']} was not sent" in caplog.text


def test_a_repository_cannot_turn_telemetry_on(bench: Workbench) -> None:
    """Where files are written and what leaves the machine is the person's choice."""
    bench.commit({".orchestrix/config.toml": '[telemetry]\notlp = "http://127.0.0.1:1"\n'})
    done = bench.call("status")
    assert done.code == 3
    assert "telemetry.otlp cannot be set by a repository" in done.err


def test_a_collector_that_is_not_there_is_an_error(bench: Workbench) -> None:
    """Exit 3, one line."""
    _ran(bench)
    with collecting(status=400) as collector:
        done = bench.call("trace", "--otlp", collector.url, "--json")
    assert (done.code, json.loads(done.out)["error"]["code"]) == (3, "environment")
