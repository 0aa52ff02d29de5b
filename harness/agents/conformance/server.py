"""A model service on loopback that follows a script: the scenario is the first part of the path."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from harness.agents.conformance import tool_choice
from harness.agents.conformance.scenarios import SCENARIOS, Scenario
from harness.agents.conformance.turns import Ask, Break, Hang, Refuse, Turn
from harness.agents.conformance.wires import anthropic, chat, gemini, responses
from harness.agents.conformance.wires.wire import Wire, encoded
from harness.model.late import dataclass

_WIRES: tuple[tuple[re.Pattern[str], Wire], ...] = (
    (re.compile(r"/messages$"), cast("Wire", anthropic)),
    (re.compile(r"/chat/completions$"), cast("Wire", chat)),
    (re.compile(r"/responses$"), cast("Wire", responses)),
    (re.compile(r"/models/(?P<model>[^/:]+):(?:stream)?[gG]enerateContent$"), cast("Wire", gemini)),
)
_COUNTS = {"/count_tokens": {"input_tokens": 100}, ":countTokens": {"totalTokens": 100}}
_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "script"}]}
_IDLE_SECONDS = 20.0
_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: header names in lower case, the body parsed."""

    scenario: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    ask: Ask
    turn: Turn


class ModelServer:
    """Speaks four wire formats; keeps no session, so that retries and parallel programs do not disturb each other.

    Use it as a context manager: `with ModelServer() as server: server.url("obey")`.
    """

    def __init__(self, scenarios: Mapping[str, Scenario] | None = None) -> None:
        """Adds scenarios to those that exist, or replaces them."""
        self.scenarios = {**SCENARIOS, **(scenarios or {})}
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="model-server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def url(self, scenario: str) -> str:
        """The base URL of a scenario, without a version and without a slash at its end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/{scenario}"

    def requests(self, scenario: str | None = None) -> list[Request]:
        """What was asked so far, in order."""
        with self._lock:
            return [request for request in self._requests if scenario in {None, request.scenario}]

    def turn(self, scenario: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any], ask: Ask) -> Request:
        """What the scenario answers; remembered."""
        with self._lock:
            earlier = sum(request.scenario == scenario for request in self._requests)
            ask = replace(ask, earlier=earlier)
            request = Request(scenario, path, headers, body, ask, self.scenarios[scenario](ask))
            self._requests.append(request)
        return request


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for them, so that no socket outlives the server

    def __init__(self, model: ModelServer) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that hangs up while it is answered is an everyday event, not a fault."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class' own
        """Requests are remembered, not printed."""

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        self._send(200, _MODELS)

    def do_POST(self) -> None:
        length = min(int(self.headers.get("Content-Length") or 0), _BODY_BYTES)
        raw = self.rfile.read(length)
        path = self.path.partition("?")[0]
        scenario = path.split("/")[1]
        for suffix, count in _COUNTS.items():
            if path.endswith(suffix):
                self._send(200, count)
                return
        found = next(((wire, match) for pattern, wire in _WIRES if (match := pattern.search(path))), None)
        if found is None or scenario not in self._model.scenarios:
            self._send(404, {"error": {"message": f"there is nothing at {path}"}})
            return
        wire, match = found
        body = json.loads(raw)
        ask = wire.ask(body, match.groupdict().get("model", ""))
        ask = replace(ask, stream=ask.stream or "alt=sse" in self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._answer(wire, self._model.turn(scenario, path, headers, body, ask))

    @property
    def _model(self) -> ModelServer:
        return cast("_Http", self.server).model

    def _answer(self, wire: Wire, request: Request) -> None:
        ask, turn = request.ask, request.turn
        if isinstance(turn, Hang):
            self._model.closing.wait()
            self.close_connection = True
            return
        if isinstance(turn, Refuse):
            status, body = wire.error(turn)
            after = {} if turn.retry_after is None else {"retry-after": str(turn.retry_after)}
            self._send(status, body, after)
            return
        reply = tool_choice.resolve(ask, turn)
        whole = not isinstance(turn, Break)
        if ask.stream:
            events = [encoded(event) for event in wire.events(ask, reply)]
            self._stream("text/event-stream", events if whole else _torn(events), whole=whole)
        else:
            text = json.dumps(wire.whole(ask, reply)).encode()
            self._stream("application/json", [text] if whole else _torn([text]), whole=whole)

    def _send(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.close_connection = True
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Connection": "close", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _stream(self, kind: str, chunks: Iterable[bytes], *, whole: bool) -> None:
        """Chunked, so that an answer without its last chunk is seen to be torn."""
        self.close_connection = True
        self.send_response(200)
        for name, value in {"Content-Type": kind, "Transfer-Encoding": "chunked", "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        if whole:
            self.wfile.write(b"0\r\n\r\n")


def _torn(chunks: list[bytes]) -> list[bytes]:
    """The first half of an answer, ended within a line."""
    text = b"".join(chunks)
    return [text[: len(text) // 2]]
