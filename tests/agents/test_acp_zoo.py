"""Hostile and broken agents: whatever is said or left unsaid, there is a verdict, and nobody is left behind."""

from __future__ import annotations

import json

import pytest

from harness.model import limits
from harness.model.verdict import Reason
from tests.agents.acp_lines import agent
from tests.agents.conftest import contract_for

_WAIT = "; time.sleep(600)"

MALFORMED = {
    "prints a banner": ("print('Welcome to the agent!', flush=True)" + _WAIT, "a malformed message: it is not JSON"),
    "sends a list": ("raw('[1, 2]\\n')" + _WAIT, "it is no JSON-RPC 2.0 object: b'[1, 2]\\n'"),
    "forgets the version of JSON-RPC": ('raw(\'{"id": 0, "result": {}}\\n\')' + _WAIT, "it is no JSON-RPC 2.0 object"),
    "sends bytes that are no text": ("os.write(1, b'\\xff\\xfe\\n')" + _WAIT, "it is not JSON"),
    "nests without end": ("raw('[' * 1_000_000 + '\\n')" + _WAIT, "it is not JSON"),
    "answers what nobody asked": ("send(id=77, result={})" + _WAIT, "the agent answers 77, which nobody asked"),
    "answers with true for one": (
        "read(); send(id=False, result={'protocolVersion': 1})" + _WAIT,
        "the agent answers False, which nobody asked",
    ),
    "answers twice": (
        "m = read(); answer(m, protocolVersion=1); answer(m, protocolVersion=1)" + _WAIT,
        "the agent answers 0, which nobody asked",
    ),
    "answers with result and error": (
        "send(id=read()['id'], result={}, error={'code': 1, 'message': ''})" + _WAIT,
        "an answer has either a result or an error",
    ),
    "answers with an error of no shape": (
        "send(id=read()['id'], error='no')" + _WAIT,
        "an error has a code and a message",
    ),
    "answers initialize with nothing": (
        "answer(read())" + _WAIT,
        "the agent sent a malformed answer: protocolVersion: Field required",
    ),
    "answers initialize with a list": ("send(id=read()['id'], result=[])" + _WAIT, "the agent sent a malformed answer"),
    "speaks another version": (
        "greet(protocolVersion=9)" + _WAIT,
        "the agent speaks version 9 of the protocol, not 1",
    ),
    "opens a session without a name": (
        "greet(); answer(read())" + _WAIT,
        "the agent sent a malformed answer: sessionId: Field required",
    ),
    "ends its turn for no known reason": (
        "done(begin(), 'bored')" + _WAIT,
        "the agent sent a malformed answer: stopReason",
    ),
    "cuts its last message off": ("begin(); raw('{\"jsonrpc\": ')", "the agent's last message is cut off"),
    "sends a method that is no text": (
        "begin(); send(method=7, params={})" + _WAIT,
        "a method is a text and its parameters are an object",
    ),
    "sends parameters that are a list": (
        "begin(); send(id=1, method='fs/read_text_file', params=[])" + _WAIT,
        "a method is a text and its parameters are an object",
    ),
    "uses one id twice at once": (
        "begin(); t = ask('terminal/create', command='sleep 600')['result']['terminalId']; "
        "[send(id=1, method='terminal/wait_for_exit', params={'sessionId': 's1', 'terminalId': t}) for _ in 'ab']"
        + _WAIT,
        "a request has an id of its own",
    ),
    "sends an update without a session": (
        "begin(); send(method='session/update', params={})" + _WAIT,
        "the agent sent a malformed update: Field required",
    ),
    "sends a call without an id": (
        "begin(); update('tool_call', title='x')" + _WAIT,
        "the agent sent a malformed update: Field required",
    ),
    "tells of another session": (
        "begin(); update('tool_call', session='s2', toolCallId='c', title='x')" + _WAIT,
        "the agent tells of a session 's2' that is not open",
    ),
    "asks for another session": (
        "begin(); ask('fs/read_text_file', session='s2', path='/x')" + _WAIT,
        "the agent asks for a session 's2' that is not open",
    ),
    "asks before it is greeted": (
        "ask('session/request_permission', toolCall={'toolCallId': 'c'}, options=[])" + _WAIT,
        "the agent asks for a session 's1' that is not open",
    ),
    "tells of a call before the prompt": (
        "greet(); update('tool_call', toolCallId='c', title='x', status='completed')" + _WAIT,
        "the agent tells of a tool call before it was asked to do anything",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_the_protocol_ends_in_a_verdict(stage, marker, name) -> None:
    """Malformed, unasked for or out of order: the attempt fails at once, with words that say what was wrong."""
    script, message = MALFORMED[name]
    outcome = stage.play(agent(script, marker), contract_for())
    assert outcome.failure.reason is Reason.AGENT_FAILED
    assert message in outcome.failure.message


_DONE = "begin(); update('tool_call', toolCallId='c', title='it', status='completed', {call})" + _WAIT


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("kind='execute'", "the contract lacks run"),
        ("kind='fetch'", "the contract lacks fetch"),
        ("kind='delete', locations=[{'path': here + '/own/a'}]", "the contract lacks delete_file"),
        ("kind='edit', locations=[{'path': '/etc/passwd'}]", "/etc/passwd lies outside the workspace"),
        ("kind='edit', locations=[{'path': here + '/b'}]", "b is not among the paths that the step owns"),
        (
            "kind='edit', content=[{'type': 'diff', 'path': here + '/b', 'newText': ''}]",
            "b is not among the paths that the step owns",
        ),
        ("kind='read', locations=[]", "the contract lacks read_file"),
    ],
)
def test_a_forbidden_call_without_asking_is_a_breach(stage, marker, call, why) -> None:
    """The agent is ended by what it says of itself; an agent that hides it is the sandbox's and the tree's to judge."""
    script = _DONE.format(call=call)
    failure = stage.play(agent(script, marker), contract_for(tools=["write_file"], owns=["own/**"])).failure
    assert failure.reason is Reason.TOOL_DENIED
    assert "the agent did this without asking" in failure.message
    assert failure.message.endswith(why)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "permit('c', kind='execute', title='ls'); update('tool_call_update', toolCallId='c', status='completed')",
            "the agent did this although it was denied: execute 'ls': the contract lacks run",
        ),
        (
            "update('tool_call', toolCallId='c', title='ls', kind='execute', status='in_progress'); done(prompt)",
            "the agent did this without asking: execute 'ls': the contract lacks run",
        ),
        (
            "update('current_mode_update', currentModeId='yolo')",
            "the agent left the mode default for 'yolo'",
        ),
    ],
)
def test_other_breaches_end_the_attempt_too(stage, marker, script, message) -> None:
    """Against the answer, never told to have ended, and leaving the mode in which it asks."""
    modes = {"currentModeId": "default", "availableModes": [{"id": "default", "name": "d"}]}
    script = f"prompt = begin(modes={modes!r}); {script}" + _WAIT
    failure = stage.play(agent(script, marker), contract_for(tools=["write_file"])).failure
    assert (failure.reason, failure.message) == (Reason.TOOL_DENIED, message)


def test_calls_that_are_allowed_or_denied_by_the_agent_itself_are_no_breach(stage) -> None:
    """What the contract allows need not be asked; a call that failed was not made; thinking harms nobody."""
    script = """
prompt = begin()
update("tool_call", toolCallId="a", title="w", kind="edit", status="completed", locations=[{"path": here + "/made"}])
update("tool_call", toolCallId="b", title="ls", kind="execute", status="failed")
update("tool_call", toolCallId="c", title="hm", kind="think", status="completed")
update("tool_call", toolCallId="d", title="todo", status="completed")
done(prompt)
"""
    assert stage.play(agent(script), contract_for(tools=["write_file"])).failure is None


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("begin(); sys.stderr.write('no luck\\n'); sys.exit(3)", "exited with 3; it said last: no luck"),
        ("sys.exit(0)", "left before its turn was over"),
        ("begin(); os.kill(os.getpid(), 9)", "exited with 137 and said nothing"),
        ("begin(); os.close(1); os.close(0); os.close(2); time.sleep(600)", "was ended: timeout"),
    ],
)
def test_an_early_end_is_the_agent_s_failure(stage, marker, script, message) -> None:
    """Its exit and its last words say why; an agent that only hangs up runs into its limit."""
    failure = stage.play(agent(script, marker), contract_for(timeout_ms=6_000)).failure
    assert message in failure.message


@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        ("time.sleep(600)", {"timeout_ms": 1_500}, Reason.TIMEOUT),
        ("begin(); time.sleep(600)", {"inactivity_ms": 2_500}, Reason.INACTIVITY_TIMEOUT),
        (
            "begin()\nwhile True: update('agent_message_chunk', content={'type': 'text', 'text': 'x' * 9_999})",
            {"timeout_ms": 4_000},
            Reason.TIMEOUT,
        ),
        (
            "begin()\nfor n in range(10**9): send(id=n, method='fs/read_text_file', params={'sessionId': 's1'})",
            {"timeout_ms": 4_000},
            None,
        ),
    ],
)
def test_silence_and_floods_end_at_a_limit(stage, marker, script, options, reason) -> None:
    """Neither a word nor too many of them hold anybody up."""
    failure = stage.play(agent(script, marker), contract_for(**options)).failure
    assert failure.reason is (reason or failure.reason)
    assert (stage.root / "log").stat().st_size < limits.OUTPUT_HEAD_BYTES + limits.OUTPUT_TAIL_BYTES + 1_000


def test_an_agent_that_does_not_open_a_session_is_not_waited_for(stage, marker, monkeypatch) -> None:
    """The handshake has a limit of its own, so that the wrong program is found out early."""
    monkeypatch.setattr(limits, "HANDSHAKE_MS", 1_000)
    failure = stage.play(agent("greet(); time.sleep(600)", marker), contract_for()).failure
    assert (failure.reason, failure.message) == (Reason.AGENT_FAILED, "the agent did not open a session within 1 s")


@pytest.mark.parametrize(
    ("name", "value", "script", "message"),
    [
        ("MESSAGE_BYTES", 100_000, "begin(); raw('x' * 1_000_000)", "a message of more than 100000 bytes"),
        (
            "OPEN_REQUESTS",
            4,
            (
                "begin(); t = ask('terminal/create', command='sleep 600')['result']['terminalId']\n"
                "for n in range(9): send(id=n, method='terminal/wait_for_exit', params={'sessionId': 's1', 'terminalId': t})"
            ),
            "asks more than 4 things at once",
        ),
        (
            "AGENT_REQUESTS",
            3,
            "begin()\nfor n in range(9): ask('fs/read_text_file', path='/x')",
            "asked more than 3 times",
        ),
        (
            "AGENT_CALLS",
            3,
            "begin()\nfor n in range(9): update('tool_call', toolCallId=str(n), title='x')",
            "tells of more than 3 tool calls",
        ),
        (
            "CALL_PATHS",
            3,
            "begin(); update('tool_call', toolCallId='c', title='x', locations=[{'path': str(n)} for n in range(9)])",
            "names more than 3 paths in one tool call",
        ),
    ],
)
def test_everything_has_a_limit(stage, marker, monkeypatch, name, value, script, message) -> None:  # noqa: PLR0917 - one limit is five words
    """Sizes and counts are bounded, each with a message of its own."""
    monkeypatch.setattr(limits, name, value)
    failure = stage.play(agent(script + "\ntime.sleep(600)", marker), contract_for()).failure
    assert failure.reason is Reason.AGENT_FAILED
    assert message in failure.message


def test_terminals_are_counted(stage, marker, monkeypatch) -> None:
    """A refusal that the agent hears; releasing one makes room."""
    monkeypatch.setattr(limits, "TERMINALS", 2)
    script = """
prompt = begin()
said = [ask("terminal/create", command="sleep 600") for _ in range(3)]
ask("terminal/release", terminalId=said[0]["result"]["terminalId"])
said.append(ask("terminal/create", command="sleep 600"))
shown = [item.get("error", {}).get("message", "ok") for item in said]
update("agent_message_chunk", content={"type": "text", "text": json.dumps(shown)})
done(prompt)
"""
    assert stage.play(agent(script, marker), contract_for()).failure is None
    assert json.loads((stage.root / "log").read_text()) == ["ok", "ok", "2 terminals are open", "ok"]


def test_what_stands_in_meta_does_not_become_an_argument(stage) -> None:
    """The SDK would take it as one: a path in `_meta` must not replace the path that was checked."""
    (stage.workspace / "a").write_text("a")
    script = """
prompt = begin()
said = ask("fs/read_text_file", path=here + "/a", _meta={"path": "/etc/passwd", "session_id": "s2", "self": 1})
update("agent_message_chunk", content={"type": "text", "text": json.dumps(said)}, _meta={"content": 1})
done(prompt, _meta={"stop_reason": 1})
"""
    assert stage.play(agent(script), contract_for(tools=["read_file"])).failure is None
    assert json.loads((stage.root / "log").read_text())["result"] == {"content": "a"}


def test_unknown_requests_are_declined(stage) -> None:
    """A newer agent may ask for more than we know; it is told so, and goes on."""
    script = """
prompt = begin()
said = [ask("session/telepathy"), ask("_vendor/thing"), ask("elicitation/create", message="?", mode="form")]
update("agent_message_chunk", content={"type": "text", "text": json.dumps([item["error"]["code"] for item in said])})
done(prompt)
"""
    assert stage.play(agent(script), contract_for()).failure is None
    assert (stage.root / "log").read_text() == "[-32601, -32601, -32601]"
