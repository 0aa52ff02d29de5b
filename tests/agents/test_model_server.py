"""The scripted model speaks four wire formats, streamed and whole, and keeps no session."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.model_server import Answer, ModelServer, Use, play, script

_SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def _post(url: str, body: dict[str, Any]) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def _events(text: str) -> list[Any]:
    found = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in found if line != "[DONE]"]


class Anthropic:
    path = "/v1/messages"
    tools = ({"name": "Bash", "input_schema": _SHELL},)

    def body(self, prompt: str, results: int, stream: bool) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        for number in range(results):
            call = {"type": "tool_use", "id": str(number), "name": "Bash", "input": {}}
            messages.append({"role": "assistant", "content": [call]})
            result = {"type": "tool_result", "tool_use_id": str(number), "content": "ok"}
            messages.append({"role": "user", "content": [result, {"type": "text", "text": "a reminder"}]})
        return {"model": "m", "stream": stream, "messages": messages, "tools": list(self.tools)}

    def read(self, text: str, stream: bool) -> Any:
        if not stream:
            block = json.loads(text)["content"][0]
            return block.get("text") or (block["name"], block["input"])
        events = {event["type"]: event for event in _events(text)}
        assert list(events)[-1] == "message_stop"
        start, delta = events["content_block_start"]["content_block"], events["content_block_delta"]["delta"]
        return delta.get("text") or (start["name"], json.loads(delta["partial_json"]))


class Chat:
    path = "/v1/chat/completions"
    tools = ({"type": "function", "function": {"name": "Bash", "parameters": _SHELL}},)

    def body(self, prompt: str, results: int, stream: bool) -> dict[str, Any]:
        answered = [{"role": "tool", "tool_call_id": str(number), "content": "ok"} for number in range(results)]
        messages = [{"role": "system", "content": "be good"}, {"role": "user", "content": prompt}, *answered]
        return {"model": "m", "stream": stream, "messages": messages, "tools": list(self.tools)}

    def read(self, text: str, stream: bool) -> Any:
        if stream:
            assert text.endswith("data: [DONE]\n\n")
            message = _events(text)[0]["choices"][0]["delta"]
        else:
            message = json.loads(text)["choices"][0]["message"]
        if message["content"]:
            return message["content"]
        function = message["tool_calls"][0]["function"]
        return function["name"], json.loads(function["arguments"])


class Responses:
    path = "/v1/responses"
    tools = ({"type": "function", "name": "Bash", "parameters": _SHELL},)

    def body(self, prompt: str, results: int, stream: bool) -> dict[str, Any]:
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
        answered = [{"type": "function_call_output", "call_id": "c", "output": "ok"} for _ in range(results)]
        return {"model": "m", "stream": stream, "input": [said, *answered], "tools": list(self.tools)}

    def read(self, text: str, stream: bool) -> Any:
        response = _events(text)[-1]["response"] if stream else json.loads(text)
        item = response["output"][0]
        return item["content"][0]["text"] if "content" in item else (item["name"], json.loads(item["arguments"]))


class Gemini:
    tools = ({"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": _SHELL}]},)
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"

    def body(self, prompt: str, results: int, stream: bool) -> dict[str, Any]:
        answered = [{"role": "user", "parts": [{"functionResponse": {"name": "Bash"}}]} for _ in range(results)]
        contents = [{"role": "user", "parts": [{"text": prompt}]}, *answered]
        return {"contents": contents, "tools": list(self.tools)}

    def read(self, text: str, stream: bool) -> Any:
        part = (_events(text)[0] if stream else json.loads(text))["candidates"][0]["content"]["parts"][0]
        return part.get("text") or (part["functionCall"]["name"], part["functionCall"]["args"])


WIRES = [Anthropic(), Chat(), Responses(), Gemini()]


def _path(wire: Any, stream: bool) -> str:
    return wire.path if stream else wire.path.replace(":streamGenerateContent?alt=sse", ":generateContent")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
def test_a_script_is_followed_one_call_for_each_result(server, wire, stream) -> None:
    """The request alone says how far the script has come."""
    prompt = "The task.\n" + script({"run": "make"}, {"write": "it's/made", "content": "done"}, {"say": "Finished."})
    url = server.url("obey") + _path(wire, stream)
    told = [wire.read(_post(url, wire.body(prompt, results, stream))[2], stream) for results in (2, 0, 1, 3)]
    made = """mkdir -p "$(dirname 'it'"'"'s/made')" && printf %s done > 'it'"'"'s/made'"""
    assert told == ["Finished.", ("Bash", {"command": "make"}), ("Bash", {"command": made}), "Done."]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
def test_a_broken_stream_has_no_end(server, wire) -> None:
    """The client sees that something is missing."""
    with pytest.raises(http.client.IncompleteRead) as caught:
        _post(server.url("broken-stream") + wire.path, wire.body("task", 0, True))
    assert len(caught.value.partial) > 20


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize(
    ("scenario", "status"), [("rate-limited", 429), ("auth-failed", 401), ("context-full", 400), ("overloaded", 500)]
)
def test_complaints_have_the_status_of_their_service(server, wire, scenario, status) -> None:
    """And a body with a message; a rate limit says when to come back."""
    code, headers, text = _post(server.url(scenario) + wire.path, wire.body("task", 0, True))
    assert code == status or (status == 500 and code in {503, 529})
    assert json.loads(text)["error"]["message"]
    assert headers.get("retry-after") == ("7" if status == 429 else None)


def test_a_rate_limit_can_pass(server) -> None:
    """The first request of a scenario is refused, the second one is answered."""
    url = server.url("rate-limit-once") + "/v1/chat/completions"
    body = Chat().body("task " + "\n" + script({"say": "Hello."}), 0, False)
    assert [_post(url, body)[0] for _ in range(3)] == [429, 200, 200]


def test_a_tool_is_called_by_the_arguments_that_it_has() -> None:
    """Names, arrays and absolute paths as the program wants them."""
    schema = {
        "properties": {
            "filePath": {"type": "string"},
            "content": {"type": "string"},
            "why": {"type": "string"},
            "extra": {"type": "integer"},
        },
        "required": ["filePath", "content", "why"],
    }
    body = Chat().body("Working directory: /srv/tree\nThe task.", 0, False)
    body["tools"] = [{"type": "function", "function": {"name": "write", "parameters": schema}}]
    with ModelServer({"it": play(Use("write", path="a/b", content="c"))}) as server:
        answer = _post(server.url("it") + "/v1/chat/completions", body)[2]
    assert Chat().read(answer, False) == (
        "write",
        {"filePath": "/srv/tree/a/b", "content": "c", "why": "write for the step"},
    )


def test_a_patch_tool_gets_a_patch() -> None:
    """Codex takes free-form text."""
    body = Responses().body("task", 0, False)
    body["tools"] = [{"type": "custom", "name": "apply_patch"}]
    with ModelServer({"it": play(Use("write", path="a", content="x\ny\n"))}) as server:
        answer = json.loads(_post(server.url("it") + "/v1/responses", body)[2])
    assert answer["output"][0]["input"] == "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch\n"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
def test_a_structured_answer_is_text_or_the_result_tool(wire) -> None:
    """Whichever way the caller asks for it."""
    given = {"steps": [1, 2]}
    with ModelServer({"it": play(Answer(given)), "tool": play(Answer(given, tool="Bash"))}) as server:
        as_text = _post(server.url("it") + _path(wire, False), wire.body("task", 0, False))[2]
        as_call = _post(server.url("tool") + _path(wire, False), wire.body("task", 0, False))[2]
    assert json.loads(wire.read(as_text, False)) == given
    assert wire.read(as_call, False) == ("Bash", given)


def test_requests_are_remembered_for_each_scenario(server) -> None:
    """Headers in lower case, the body parsed, the tools by name."""
    _post(server.url("text") + "/v1/messages?beta=true", Anthropic().body("one", 0, False))
    _post(server.url("edit") + "/v1/messages", Anthropic().body("two", 0, False))
    (request,) = server.requests("text")
    assert (request.path, request.ask.users, request.ask.tools[0].name) == ("/text/v1/messages", ("one",), "Bash")
    assert request.headers["content-type"] == "application/json"
    assert [seen.scenario for seen in server.requests()] == ["text", "edit"]


def test_what_does_not_exist_is_not_found(server) -> None:
    """A wrong scenario or path is a 404, not a hang."""
    paths = ("/nothing/v1/messages", "/text/v1/else")
    assert [_post(server.url("x").removesuffix("/x") + path, {})[0] for path in paths] == [404, 404]


def test_closing_ends_requests_that_hang() -> None:
    """No thread and no socket outlives the server."""
    import threading  # noqa: PLC0415 - this test only

    with ModelServer() as server:
        seen: list[object] = []

        def ask() -> None:
            try:
                _post(server.url("hang") + "/v1/messages", Anthropic().body("one", 0, True))
            except (http.client.HTTPException, OSError) as error:
                seen.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.requests("hang"):
            pass
    thread.join(10)
    assert len(seen) == 1
