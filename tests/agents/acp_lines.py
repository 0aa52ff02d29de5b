"""Agents written as plain JSON lines: each beast is a few lines that run after this prelude, without any library."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.agents.acp.agent import AcpAgent
from harness.config.acp_program import AcpProgram

KEY = "a-key-that-nobody-may-see"
PRELUDE = '''
import json, os, sys, time
def raw(text): sys.stdout.write(text); sys.stdout.flush()
def send(**message): raw(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
def read():
    line = sys.stdin.readline()
    if not line: sys.exit(9)
    return json.loads(line)
def answer(to, **result): send(id=to["id"], result=result)
def greet(**more): answer(read(), **{"protocolVersion": 1, **more})
def begin(session="s1", modes=None):
    """Answers up to the prompt, and returns it."""
    greet(agentInfo={"name": "beast", "version": "1"})
    answer(read(), sessionId=session, **({"modes": modes} if modes else {}))
    message = read()
    if message["method"] == "session/set_mode":
        answer(message); message = read()
    return message
def update(what, session="s1", **fields):
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **fields}})
def ask(method, session="s1", **params):
    send(id="q", method=method, params={"sessionId": session, **params})
    return read()
def permit(call, options=("allow_once", "reject_once"), **fields):
    offered = [{"optionId": kind, "name": kind, "kind": kind} for kind in options]
    return ask("session/request_permission", toolCall={"toolCallId": call, **fields}, options=offered)["result"]["outcome"]
def done(prompt, reason="end_turn", **more): answer(prompt, stopReason=reason, **more)
here = os.getcwd()
'''


def agent(script: str, *words: str, mode: str | None = None, serves: Sequence[str] = ()) -> AcpAgent:
    """The agent that runs the script; `words` stand in its argument list."""
    command = (sys.executable, "-I", "-S", "-c", PRELUDE + script, *words)
    serves = tuple(serves or ("read", "write", "terminal"))
    return AcpAgent(AcpProgram(command, mode=mode, env=("BEAST_KEY",), serves=serves), {"BEAST_KEY": KEY, "OTHER": "x"})
