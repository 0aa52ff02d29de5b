"""The agent that is talked with, played by scripted ones that behave."""

from __future__ import annotations

import json

import pytest

from harness.agents.acp.agent import AcpAgent
from harness.config.acp_program import AcpProgram
from harness.model.contract import Contract
from harness.model.verdict import Reason
from tests.agents.acp_lines import KEY, agent
from tests.agents.conformance import AgentConformance
from tests.agents.conftest import contract_for

ALL = ("read_file", "write_file", "edit_file", "delete_file", "move_file", "run")


class TestAcp(AgentConformance):
    """One script for every contract of the suite: what it does depends on the words of its prompt."""

    script = """
prompt = begin()
words = prompt["params"]["prompt"][0]["text"]
if "fails" in words: done(prompt, "refusal")
elif "sleeps as " in words:
    word = words.split("sleeps as ")[1].split()[0]
    os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "sleep 600; true", word)
else:
    call = {"kind": "edit", "title": "make it", "locations": [{"path": here + "/made"}]}
    if permit("c1", **call)["optionId"] == "allow_once":
        open("made", "w").write("done")
        update("tool_call", toolCallId="c1", status="completed", **call)
        done(prompt)
    else: done(prompt, "cancelled")
"""

    def agent(self) -> AcpAgent:
        return agent(self.script)

    def writes(self) -> Contract:
        return contract_for()

    def fails(self) -> Contract:
        return _described("fails")

    def forbidden(self) -> Contract:
        return contract_for(tools=["read_file"])

    def sleeps(self, word: str) -> Contract:
        return _described(f"sleeps as {word}")

    def test_nothing_to_do_is_refused(self, stage) -> None:
        """It needs neither command nor actions: the prompt is its work."""
        assert stage.play(self.agent(), contract_for()).failure is None


def _described(text: str) -> Contract:
    contract = contract_for()
    return contract.model_copy(update={"step": contract.step.model_copy(update={"description": text})})


def _facts(stage, *types: str) -> list[dict]:
    return [values for kind, values in stage.facts if kind in types]


def test_a_session_opens_in_the_workspace_with_the_prompt(stage) -> None:
    """Who it talks with, where, and with which words; what the contract does not allow is not offered."""
    script = """
hello = read(); answer(hello, protocolVersion=1, agentInfo={"name": "beast", "version": "7"})
new = read(); answer(new, sessionId="s1")
prompt = read()
open("made", "w").write(json.dumps([hello["params"]["clientCapabilities"], new["params"], here, prompt["params"]]))
done(prompt, usage={"totalTokens": 5, "inputTokens": 2, "outputTokens": 3})
"""
    outcome = stage.play(agent(script), contract_for(tools=["write_file"]))
    assert outcome.failure is None
    offers, new, here, prompt = json.loads(stage.files()["made"])
    assert (offers["fs"], offers.get("terminal", False)) == ({"writeTextFile": True}, False)
    assert (new["cwd"], here) == (str(stage.workspace), str(stage.workspace))
    assert prompt["sessionId"] == "s1"
    assert "the description" in prompt["prompt"][0]["text"]
    assert _facts(stage, "acp.session_opened") == [
        {"attempt": 2, "session_id": "s1", "mode": None, "program": "beast", "version": "7"}
    ]
    assert outcome.usage == {
        "session_id": "s1",
        "program": "beast",
        "version": "7",
        "total_tokens": 5,
        "input_tokens": 2,
        "output_tokens": 3,
    }


@pytest.mark.parametrize(
    ("tools", "owns", "call", "why"),
    [
        (["write_file"], None, ["edit", "new"], ""),
        (["edit_file"], None, ["edit", "there"], ""),
        (["edit_file"], None, ["edit", "new"], "the contract lists none of write_file, apply_patch"),
        (["run"], None, ["edit", "there"], "the contract lists none of write_file, edit_file, apply_patch"),
        (["write_file"], ["a/**"], ["edit", "a/b"], ""),
        (["write_file"], ["a/**"], ["edit", "a/b", "there"], "there is not among the paths that the step owns"),
        (["write_file"], ["a/**"], ["edit", ".orchestrix/step-3-result.md"], ""),
        (["write_file"], None, ["edit", "/etc/passwd"], "/etc/passwd lies outside the workspace"),
        (["write_file"], None, ["edit", "a/../../x"], "{here}/a/../../x lies outside the workspace"),
        (["write_file"], None, ["edit", ".git/config"], "'.git/config' belongs to git"),
        (["write_file"], None, ["edit", "out/x"], "'out/x' leads out of the workspace"),
        (["write_file"], None, ["edit"], "it does not say which files it would edit"),
        (["write_file"], None, ["delete", "there"], "the contract lacks delete_file"),
        (["delete_file"], None, ["delete", "there"], ""),
        (["move_file"], ["a/**"], ["move", "a/x", "a/y"], ""),
        (["move_file"], ["a/**"], ["move", "a/x", "y"], "y is not among the paths that the step owns"),
        (["read_file"], None, ["read", "there"], ""),
        (["read_file"], None, ["read", "/etc/passwd"], "/etc/passwd lies outside the workspace"),
        ([], None, ["search"], "the contract lacks read_file"),
        (["shell"], None, ["execute"], ""),
        (["write_file"], None, ["execute"], "the contract lacks run"),
        (["run"], None, ["fetch"], "the contract lacks fetch"),
        (["fetch"], None, ["fetch"], ""),
        (ALL, None, ["other"], "the contract lacks other"),
        (ALL, None, ["no-such-kind"], "the contract lacks other"),
        (ALL, None, ["switch_mode"], "the contract lacks switch_mode"),
        ([], None, ["think"], ""),
    ],
)
def test_permissions_are_answered_from_the_contract(stage, tools, owns, call, why) -> None:
    """Kind and paths decide; asked and answered are facts, and the turn goes on after a refusal."""
    kind, *paths = call
    (stage.workspace / "there").write_text("x")
    (stage.workspace / "out").symlink_to("/tmp")
    places = [path if path.startswith("/") else f"{stage.workspace}/{path}" for path in paths]
    script = f"""
prompt = begin()
places = [{{"path": path}} for path in {places!r}]
update("tool_call", toolCallId="c1", title="the title", kind={kind!r}, status="pending", locations=places)
outcome = permit("c1", options=("allow_always", "reject_always", "allow_once", "reject_once"))
update("tool_call_update", toolCallId="c1", status="failed")
update("agent_message_chunk", content={{"type": "text", "text": json.dumps(outcome)}})
done(prompt)
"""
    outcome = stage.play(agent(script), contract_for(tools=tools, owns=owns))
    assert outcome.failure is None
    why = why.format(here=stage.workspace)
    asked, answered = _facts(stage, "permission.asked", "permission.allowed", "permission.denied")
    shown = [path if ".." not in path else f"{stage.workspace}/{path}" for path in paths]
    known = "other" if kind == "no-such-kind" else kind
    about = {"attempt": 2, "call": "c1", "tool_kind": known, "title": "the title", "paths": shown}
    assert asked == about
    assert answered == (about | {"why": why} if why else about)
    chosen = '{"optionId": "%s", "outcome": "selected"}' % ("reject_once" if why else "allow_once")
    assert chosen in (stage.root / "log").read_text()


def test_a_permission_for_ever_is_never_given(stage) -> None:
    """Where nothing smaller is offered, the answer is no; where nothing can be refused, the turn is told to be over."""
    script = """
prompt = begin()
first = permit("c1", options=("allow_always", "reject_always"), kind="execute", title="x")
second = permit("c2", options=("allow_always",), kind="execute", title="x")
update("agent_message_chunk", content={"type": "text", "text": json.dumps([first, second])})
done(prompt)
"""
    assert stage.play(agent(script), contract_for()).failure is None
    denied = _facts(stage, "permission.denied")
    assert [fact["why"] for fact in denied] == ["it cannot be allowed for once only"] * 2
    expected = '[{"optionId": "reject_always", "outcome": "selected"}, {"outcome": "cancelled"}]'
    assert expected in (stage.root / "log").read_text()


def test_files_are_served_by_the_broker_within_workspace_and_ownership(stage) -> None:
    """Reads and writes that the contract allows work; all others are refused with a word, and told."""
    (stage.workspace / "a").write_text("one\ntwo\nthree\n")
    script = """
prompt = begin()
said = [
    ask("fs/read_text_file", path=here + "/a"),
    ask("fs/read_text_file", path=here + "/a", line=2, limit=1),
    ask("fs/read_text_file", path=here + "/missing"),
    ask("fs/read_text_file", path="/etc/passwd"),
    ask("fs/write_text_file", path=here + "/own/b", content="new"),
    ask("fs/write_text_file", path=here + "/a", content="new"),
    ask("fs/write_text_file", path=here + "/../x", content="new"),
    ask("fs/write_text_file", path=here + "/own/b"),
]
shown = [item.get("result", item.get("error", {}).get("message")) for item in said]
update("agent_message_chunk", content={"type": "text", "text": json.dumps(shown)})
done(prompt)
"""
    assert stage.play(agent(script), contract_for(tools=["read_file", "write_file"], owns=["own/**"])).failure is None
    assert json.loads((stage.root / "log").read_text()) == [
        {"content": "one\ntwo\nthree\n"},
        {"content": "two\n"},
        "Resource not found",
        "'/etc/passwd' is not a path inside the workspace",
        {},
        "a is not among the paths that the step owns",
        f"'{stage.workspace}/../x' is not a path inside the workspace",
        "Invalid params",
    ]
    assert stage.files() == {"a": "one\ntwo\nthree\n", "own/b": "new"}
    assert stage.told == [
        ("read_file", True, True),
        ("read_file", True, True),
        ("read_file", False, False),
        ("write_file", True, True),
        ("write_file", False, False),
    ]
    assert _facts(stage, "tool.denied") == [
        {"tool": "write_file", "arguments": {"path": "a"}, "message": "a is not among the paths that the step owns"}
    ]


def test_terminals_run_behind_the_door_with_their_output_as_it_comes(stage) -> None:
    """Output, exit, kill and release; each has a log of its own and is told when it has ended."""
    script = """
prompt = begin()
os.mkdir("sub")
def create(command, *args, **more): return ask("terminal/create", command=command, args=list(args), **more)["result"]["terminalId"]
def wait(name): return ask("terminal/wait_for_exit", terminalId=name)["result"]
def output(name): return ask("terminal/output", terminalId=name)["result"]
one = create("sh", "-c", "echo $GIVEN; pwd; exit 3", cwd=here + "/sub", env=[{"name": "GIVEN", "value": "x"}])
said = [wait(one), output(one)["output"], output(one)["exitStatus"]]
two = create("echo begun; sleep 600")
while "begun" not in output(two)["output"]: time.sleep(0.01)
said += ["exitStatus" in output(two), ask("terminal/kill", terminalId=two)["result"], output(two)]
three = create("printf '\\u00e4\\u00e4\\u00e4'", outputByteLimit=3)
wait(three)
said += [output(three), ask("terminal/release", terminalId=three)["result"]]
said += [ask("terminal/output", terminalId=three)["error"]["message"]]
said += [ask("terminal/create", command="true", cwd="/etc")["error"]["message"]]
update("agent_message_chunk", content={"type": "text", "text": json.dumps(said)})
done(prompt)
"""
    outcome = stage.play(agent(script), contract_for())
    assert outcome.failure is None
    killed = {"output": "begun\n", "truncated": False, "exitStatus": {"signal": "SIGKILL"}}
    assert json.loads((stage.root / "log").read_text()) == [
        {"exitCode": 3},
        f"x\n{stage.workspace}/sub\n",
        {"exitCode": 3},
        False,
        {},
        killed,
        {"output": "ä", "truncated": True, "exitStatus": {"exitCode": 0}},
        {},
        "there is no terminal 'terminal-3'",
        "/etc lies outside the workspace",
    ]
    assert (stage.root / "log-terminal-1").read_text() == f"x\n{stage.workspace}/sub\n"
    assert [(fact["ok"], fact["message"]) for fact in _facts(stage, "tool.called")] == [
        (False, "exit code 3"),
        (True, ""),
    ]


def test_without_run_there_is_no_terminal(stage) -> None:
    """Also for an agent that asks although none was offered."""
    script = """
prompt = begin()
update("agent_message_chunk", content={"type": "text", "text": ask("terminal/create", command="true")["error"]["message"]})
done(prompt)
"""
    assert stage.play(agent(script), contract_for(tools=["write_file"])).failure is None
    assert (stage.root / "log").read_text() == "the contract lacks run"
    assert [kind for kind, _ in stage.facts] == ["acp.session_opened", "tool.denied"]


def test_a_terminal_that_the_agent_forgets_is_ended_with_it(stage) -> None:
    """Nothing of the step outlives it."""
    script = """
prompt = begin()
ask("terminal/create", command="sleep 600 && echo forgotten-terminal-7f3a")
done(prompt)
"""
    from tests.sandbox.survivors import marked  # noqa: PLC0415 - one test looks for survivors

    assert stage.play(agent(script), contract_for()).failure is None
    assert marked("forgotten-terminal-7f3a") == []


def test_plans_and_calls_are_told_once_each_time_they_change(stage) -> None:
    """A call when it is first heard of and when it has ended; a plan when it is another one."""
    script = """
prompt = begin()
entry = lambda status: {"content": "look", "priority": "high", "status": status}
for status in ("pending", "pending", "in_progress", "completed"): update("plan", entries=[entry(status)])
update("tool_call", toolCallId="c1", title="look", kind="read", locations=[{"path": here + "/a"}])
for status in ("in_progress", "in_progress", "completed", "completed"):
    update("tool_call_update", toolCallId="c1", status=status)
update("something_new", field=1)
send(method="_vendor/news", params={})
update("usage_update", used=1, size=2, cost={"amount": 0.25, "currency": "USD"})
done(prompt)
"""
    outcome = stage.play(agent(script), contract_for(tools=["read_file"]))
    assert outcome.failure is None
    assert outcome.usage["cost_usd"] == 0.25
    plans = [fact["entries"][0]["status"] for fact in _facts(stage, "acp.plan_reported")]
    assert plans == ["pending", "in_progress", "completed"]
    about = {"attempt": 2, "call": "c1", "tool_kind": "read", "title": "look", "paths": ["a"]}
    assert _facts(stage, "acp.call_reported") == [about | {"status": "pending"}, about | {"status": "completed"}]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_tokens", (Reason.AGENT_FAILED, "the model ran out of tokens")),
        ("max_turn_requests", (Reason.AGENT_FAILED, "the agent reached its limit of requests for one turn")),
        ("refusal", (Reason.AGENT_FAILED, "the model refused to go on")),
        ("cancelled", (Reason.AGENT_FAILED, "the agent ended its turn as cancelled")),
    ],
)
def test_a_turn_that_did_not_end_well_fails(stage, reason, expected) -> None:
    """Only the end of a turn is an end."""
    failure = stage.play(agent(f"done(begin(), {reason!r})"), contract_for()).failure
    assert (failure.reason, failure.message) == expected


def test_an_agent_that_gives_up_after_a_denial_failed_by_it(stage) -> None:
    """Some agents end their turn when they are refused; the cause is the refusal."""
    script = "prompt = begin(); permit('c1', kind='execute', title='ls'); done(prompt, 'cancelled')"
    failure = stage.play(agent(script), contract_for(tools=["write_file"])).failure
    assert failure.reason is Reason.TOOL_DENIED
    assert failure.message == "the agent gave up after a denial: execute ls: the contract lacks run"


MODES = '{"currentModeId": "yolo", "availableModes": [%s]}'


@pytest.mark.parametrize(
    ("offered", "wanted", "expected"),
    [
        (["yolo", "default"], None, "default"),
        (["auto", "default", "read-only"], None, "read-only"),
        (["build", "plan"], "build", "build"),
    ],
)
def test_the_asking_mode_is_chosen(stage, offered, wanted, expected) -> None:
    """The settings decide; otherwise the most careful mode that is known to ask."""
    modes = {"currentModeId": "yolo", "availableModes": [{"id": mode, "name": mode} for mode in offered]}
    assert stage.play(agent(f"done(begin(modes={modes!r}))", mode=wanted), contract_for()).failure is None
    assert _facts(stage, "acp.session_opened")[0]["mode"] == expected


@pytest.mark.parametrize(
    ("offered", "wanted", "message"),
    [
        (["build", "plan"], None, "none of the agent's modes is known to ask before it acts"),
        (["build", "plan"], "ask", "the agent has no mode 'ask'"),
        ([], "ask", "the agent has no mode 'ask'"),
    ],
)
def test_without_an_asking_mode_nothing_is_prompted(stage, offered, wanted, message) -> None:
    """Refused before it starts rather than silently wider."""
    modes = {"currentModeId": "x", "availableModes": [{"id": mode, "name": mode} for mode in offered]}
    failure = stage.play(agent(f"begin(modes={modes!r}); open('made', 'w')", mode=wanted), contract_for()).failure
    assert (failure.reason, failure.message) == (Reason.CONTRACT_REFUSED, message)
    assert stage.files() == {}


def test_a_missing_program_is_not_worth_a_retry(stage) -> None:
    """It is the machine that lacks something."""
    failure = stage.play(AcpAgent(AcpProgram(("no-such-agent",)), {}), contract_for()).failure
    assert (failure.reason, failure.retryable) == (Reason.AGENT_MISSING, False)


def test_a_missing_library_is_said_with_what_to_install(stage, monkeypatch) -> None:
    """The extra is optional: a run without such agents never needs it."""
    from harness.agents.acp import agent as module  # noqa: PLC0415 - one test changes it

    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    failure = stage.play(agent("begin()"), contract_for()).failure
    assert failure.reason is Reason.AGENT_MISSING
    assert failure.hint == 'install it with `pip install "orchestrix-harness[acp]"`'


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"code": -32000, "message": "Authentication required"}, Reason.AUTH_FAILED),
        ({"code": 429, "message": "Try again later"}, Reason.RATE_LIMITED),
        ({"code": -32603, "message": "Internal error", "data": {"details": "Rate limit hit"}}, Reason.RATE_LIMITED),
        ({"code": -32603, "message": "Internal error", "data": {"details": "boom"}}, Reason.AGENT_FAILED),
    ],
)
def test_errors_of_the_agent_are_told_apart(stage, error, reason) -> None:
    """Logging in, waiting and trying again are different answers."""
    failure = stage.play(agent(f"send(id=begin()['id'], error={error!r})"), contract_for()).failure
    assert failure.reason is reason
    assert error["message"] in failure.message


def test_the_agent_has_a_home_and_the_variables_that_settings_name(stage) -> None:
    """A home of its own that it can write, its key, and nothing else of the user's."""
    script = """
prompt = begin()
open(os.environ["HOME"] + "/written", "w").close()
open("made", "w").write(json.dumps([os.environ["HOME"], os.environ["BEAST_KEY"], "OTHER" in os.environ]))
done(prompt)
"""
    assert stage.play(agent(script), contract_for()).failure is None
    assert json.loads(stage.files()["made"]) == [str(stage.root / "private" / "home"), KEY, False]
    assert (stage.root / "private" / "home" / "written").exists()


def test_a_key_reaches_neither_log_nor_facts_nor_verdict(stage) -> None:
    """Whatever the agent says, thinks of as a title, prints to stderr or gives as its error."""
    script = """
prompt = begin()
key = os.environ["BEAST_KEY"]
sys.stderr.write(key + chr(10)); sys.stderr.flush()
update("agent_message_chunk", content={"type": "text", "text": "my key is " + key})
update("plan", entries=[{"content": key, "priority": "low", "status": "pending"}])
permit("c1", kind="execute", title="echo " + key)
send(id=prompt["id"], error={"code": 1, "message": "bad key " + key})
"""
    failure = stage.play(agent(script), contract_for()).failure
    hidden = "*" * len(KEY)
    assert failure.message == f"the agent answered with an error: bad key {hidden}"
    log = (stage.root / "log").read_text()
    assert log.count(hidden) == 2
    assert KEY not in log + repr(stage.facts)
    assert _facts(stage, "permission.asked")[0]["title"] == f"echo {hidden}"
