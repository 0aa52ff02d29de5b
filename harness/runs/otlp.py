"""Sends the trace of a run to a collector, by OpenTelemetry's own exporter."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.errors import EnvironmentProblem, UsageError
from harness.model.spans import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_PATH = "/v1/traces"
_TIMEOUT_SECONDS = 10
_SAMPLED = 1


def send(spans: Sequence[Span], url: str) -> None:
    """All spans in one request by OTLP over HTTP; raises EnvironmentProblem when the collector did not take them.

    Headers and certificates come from OpenTelemetry's own environment variables.
    """
    address = _address(url)
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - as above
    except ImportError as error:
        raise EnvironmentProblem(
            "OpenTelemetry is not installed", hint="pip install 'orchestrix-harness[otel]'"
        ) from error
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the error below says it, once
    exporter = OTLPSpanExporter(endpoint=address, timeout=_TIMEOUT_SECONDS)
    try:
        taken = exporter.export(_readable(spans)) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]  # the exporter leaves it untyped
    if not taken:
        raise EnvironmentProblem(f"{address} did not take the trace", hint="is a collector listening there?")


def _address(url: str) -> str:
    """A collector's address; the path of traces is added where only a host was given."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{url!r:.120} is not the address of a collector", hint="give http://HOST:4318")
    return url if parts.path.strip("/") else url.rstrip("/") + _PATH


def _readable(spans: Sequence[Span]) -> list[ReadableSpan]:
    """The spans as the SDK has them, with the ids that the log gave them."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - as above
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415 - as above
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags  # noqa: PLC0415 - as above

    from harness import __version__  # noqa: PLC0415 - as above

    resource = Resource.create({"service.name": "orchestrix", "service.version": __version__})
    scope = InstrumentationScope("harness", __version__)

    def context(trace_id: str, span_id: str) -> SpanContext:
        return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(_SAMPLED))

    return [
        ReadableSpan(
            name=span.name,
            context=context(span.trace_id, span.span_id),
            parent=None if span.parent_id is None else context(span.trace_id, span.parent_id),
            resource=resource,
            attributes=span.attributes,
            status=Status(StatusCode.ERROR, span.message) if span.error else Status(StatusCode.OK),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=scope,
        )
        for span in spans
    ]
