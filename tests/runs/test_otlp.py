"""A trace reaches a collector that listens on this machine, as OTLP over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness.errors import EnvironmentProblem, UsageError
from harness.model.spans import Span
from harness.runs import otlp

TRACE = "0123456789abcdef0123456789abcdef"
SPANS = [
    Span("run r1", TRACE, "00000000000000aa", None, 1_000, 9_000, {"orchestrix.run.id": "r1"}),
    Span("chat m", TRACE, "00000000000000bb", "00000000000000aa", 2_000, 3_000, {"n": 7}, "timeout", "too slow"),
]


class Collector:
    """Keeps what it is sent and answers with one status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests: list[tuple[str, str, bytes]] = []
        self.url = ""


@contextmanager
def collecting(status: int = 200) -> Iterator[Collector]:
    collector = Collector(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests.append((self.path, self.headers["Content-Type"], body))
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_collector_gets_every_span_as_the_log_has_it() -> None:
    """Ids, parents, times, attributes and errors."""
    with collecting() as collector:
        otlp.send(SPANS, collector.url)
    ((path, kind, body),) = collector.requests
    assert (path, kind) == ("/v1/traces", "application/x-protobuf")
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    named = {item.key: item.value.string_value for item in resource.resource.attributes}
    assert named["service.name"] == "orchestrix"
    first, second = resource.scope_spans[0].spans
    assert (first.name, first.trace_id.hex(), first.span_id.hex(), first.parent_span_id) == (
        "run r1",
        TRACE,
        "00000000000000aa",
        b"",
    )
    assert (first.start_time_unix_nano, first.end_time_unix_nano, first.status.code) == (1_000, 9_000, 1)
    assert (second.parent_span_id.hex(), second.status.code, second.status.message) == (
        "00000000000000aa",
        2,
        "too slow",
    )
    assert [(item.key, item.value.int_value) for item in second.attributes] == [("n", 7)]


def test_a_path_that_was_given_is_kept() -> None:
    """Collectors behind a gateway have one of their own."""
    with collecting() as collector:
        otlp.send(SPANS, f"{collector.url}/gateway/traces")
    assert collector.requests[0][0] == "/gateway/traces"


def test_a_collector_that_refuses_is_named() -> None:
    """The trace was not taken, and that is said."""
    with collecting(status=400) as collector, pytest.raises(EnvironmentProblem, match="did not take the trace"):
        otlp.send(SPANS, collector.url)


@pytest.mark.parametrize("url", ["", "localhost:4318", "ftp://h/x", "http://", "http:///v1/traces"])
def test_an_address_that_is_none_is_refused(url) -> None:
    """Before anything is loaded or sent."""
    with pytest.raises(UsageError):
        otlp.send(SPANS, url)
