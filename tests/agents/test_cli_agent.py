"""One class runs any program with a profile; the programs of these tests are shell scripts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.agents import profile as profiles
from harness.agents.cli import CliAgent
from harness.agents.profile import Profile
from harness.model.process import Means, ProcessResult, ProcessSpec, Rights
from harness.model.verdict import Reason
from harness.ports import Job, Outcome
from harness.sandbox import choice, environment
from tests.agents.conftest import contract_for

_RESULT = """echo '{"type":"result","text":"done","session":"s-1","use":{"in":3,"out":4}}'"""
_PROFILE: dict[str, Any] = {
    "version": 1,
    "title": "Robot",
    "program": "robot",
    "call": {"prompt": "stdin", "arguments": ["--tools", "{tools}"], "model": ["--model", "{model}"]},
    "environment": {
        "variables": ["ROBOT_URL"],
        "secrets": ["ROBOT_KEY"],
        "one_of": ["ROBOT_KEY"],
        "set": {"ROBOT_MODE": "quiet", "ROBOT_CONFIG": "{home}/robot.json"},
    },
    "files": [{"path": "robot.json", "content": '{"url": "{env:ROBOT_URL}", "model": "{model}"}'}],
    "tools": {"grants": {"Read": ["read_file"], "Change": ["write_file", "edit_file"], "Shell": ["run"]}},
    "session": {
        "arguments": ["--resume", "{session}"],
        "files": "sessions/*/{session}.json",
        "place": "sessions/{slug}",
    },
    "output": {
        "lines": [
            {
                "when": {"type": "result"},
                "take": {
                    "session_id": "session",
                    "result": "text",
                    "input_tokens": "use.in",
                    "output_tokens": "use.out",
                },
                "ends": True,
            },
            {"when": {"type": "failed"}, "take": {"error": "text"}, "ends": True, "fails": True},
        ]
    },
    "complaints": {
        "rate_limited": ["slow down"],
        "auth_failed": ["who are you"],
        "context_full": ["too long"],
        "retry_after": [r"in (\d+)s"],
    },
}
_ENVIRON = {"ROBOT_KEY": "a-long-secret", "ROBOT_URL": "http://there", "OTHER_KEY": "other-secret"}


@dataclass
class Scene:
    """A program of its own on PATH, and attempts with it."""

    root: Path
    attempt: int = 0
    means: Means = field(default_factory=Means)

    def program(self, script: str) -> None:
        path = self.root / "bin" / "robot"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    @property
    def workspace(self) -> Path:
        return self.root / f"attempt-{self.attempt}" / "workspace"

    @property
    def log(self) -> Path:
        return self.root / "run" / "logs" / f"attempt-{self.attempt}.log"

    def play(self, script: str | None = None, **options: Any) -> Outcome:
        return asyncio.run(self.perform(script, **options))

    async def perform(
        self,
        script: str | None = None,
        *,
        profile: Mapping[str, Any] | None = None,
        tools: Sequence[str] = ("read_file", "write_file", "edit_file", "run"),
        environ: Mapping[str, str] = _ENVIRON,
        model: str = "",
        previous: Mapping[str, Any] | None = None,
        confined: bool = True,
        resumes: bool = True,
        timeout_ms: int = 30_000,
    ) -> Outcome:
        if script is not None:
            self.program(script)
        self.attempt += 1
        private = self.workspace.parent / "private"
        for folder in (self.workspace, private, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        job = Job(
            contract=contract_for(tools=tools, timeout_ms=timeout_ms),
            attempt=self.attempt,
            workspace=self.workspace,
            prompt="the prompt",
            env={"GIVEN": "by the step"},
            private=private,
            log=self.log,
            confined=confined,
            previous_usage=previous or {},
        )
        known = Profile.model_validate({**_PROFILE, **(profile or {}), "name": "robot"})
        agent = CliAgent(known, environ, model=model, resumes=resumes)
        return await agent.perform(job, None, self._execute(job))  # type: ignore[arg-type]

    def _execute(self, job: Job):
        async def execute(argv, *, purpose, stdin=b"", env=None, means=None) -> ProcessResult:
            self.means = means
            path = f"{self.root / 'bin'}:{os.environ['PATH']}"
            spec = ProcessSpec(
                argv=tuple(argv),
                cwd=job.workspace,
                env={**environment.inherited(os.environ), **env, "PATH": path},
                log=job.log,
                timeout_ms=job.contract.execution.attempt_timeout_ms,
                stdin=stdin,
                rights=Rights(readable=(job.private, self.root / "bin"), writable=means.writable),
                secrets=means.secrets,
                until=means.until,
            )
            return await choice.choose("auto").run(spec, on_start=lambda who: None)

        return execute

    def made(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.workspace.iterdir() if path.is_file()}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_program_gets_its_prompt_its_tools_and_a_home_of_its_own(scene) -> None:
    """Arguments, variables and files as the profile says; nothing of the user's home."""
    script = f'cat > prompt; echo "$@" > arguments; cat "$ROBOT_CONFIG" > config; echo hi > "$HOME/mine"; env > env; {_RESULT}'
    outcome = scene.play(script, tools=["read_file", "edit_file", "shell"], model="m-1")
    assert (outcome.failure, outcome.exit_code) == (None, 0)
    assert outcome.usage == {
        "agent": "robot",
        "input_tokens": 3,
        "output_tokens": 4,
        "result": "done",
        "session_id": "s-1",
    }
    made = scene.made()
    assert made["prompt"] == "the prompt"
    assert made["arguments"] == "--tools Read,Shell --model m-1\n"
    assert json.loads(made["config"]) == {"url": "http://there", "model": "m-1"}
    seen = dict(line.split("=", 1) for line in made["env"].splitlines() if "=" in line)
    home = str(scene.workspace.parent / "private" / "home")
    assert (seen["HOME"], seen["XDG_CONFIG_HOME"], seen["ROBOT_MODE"]) == (home, f"{home}/.config", "quiet")
    assert (seen["GIVEN"], seen["ROBOT_KEY"]) == ("by the step", "a-long-secret")
    assert "OTHER_KEY" not in seen


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"prompt": "argument", "arguments": ["--task", "{prompt}"]}, "--task|the prompt|"),
        ({"prompt": "file", "arguments": ["--file", "{prompt_file}"]}, "--file|HOME/prompt.md|"),
        (
            {"prompt": "stdin", "given": [{"variable": "ROBOT_URL", "arguments": ["--url", "{env:ROBOT_URL}"]}]},
            "--url|http://there|",
        ),
        ({"prompt": "stdin", "given": [{"variable": "OTHER_KEY", "arguments": ["--other"]}]}, ""),
    ],
)
def test_the_call_is_what_the_profile_says(scene, call, expected) -> None:
    """Prompts go in three ways; some arguments depend on a variable."""
    scene.play(
        f"""[ $# = 0 ] || printf '%s|' "$@" | sed "s#$HOME#HOME#" > arguments; {_RESULT}""", profile={"call": call}
    )
    assert scene.made().get("arguments", "") == expected


def test_a_result_ends_the_attempt_and_a_lingering_program(scene, monkeypatch) -> None:
    """The result counts, not how long the program stays nor how it dies: the time limit, far earlier, is not met."""
    monkeypatch.setattr("harness.model.limits.RESULT_GRACE_MS", 100)
    outcome = scene.play(f"echo made > made; {_RESULT}; sleep 600")
    assert (outcome.failure, outcome.exit_code, outcome.usage["result"]) == (None, None, "done")


def test_exit_zero_without_a_result_is_a_failure(scene) -> None:
    """Where the program would have told a result."""
    failure = scene.play("echo bye").failure
    assert (failure.reason, failure.message) == (
        Reason.AGENT_FAILED,
        "Robot exited with 0 without its result; it said last: bye",
    )
    assert scene.play("echo bye", profile={"output": {}}).failure is None


def test_a_result_outweighs_the_exit_code(scene) -> None:
    """It is the agent's word on its work; the tree and the checks judge it."""
    assert scene.play(f"{_RESULT}; exit 3").failure is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("please slow down, try in 7s", (Reason.RATE_LIMITED, "Robot asks to be tried again later", 7000)),
        ("slow down", (Reason.RATE_LIMITED, "Robot asks to be tried again later", None)),
        ("who are you", (Reason.AUTH_FAILED, "Robot was not let in by the model's service", None)),
        ("that is too long", (Reason.CONTEXT_FULL, "the step does not fit into the context of Robot's model", None)),
    ],
)
@pytest.mark.parametrize("way", ["an event", "text"])
def test_complaints_have_reasons_of_their_own(scene, words, expected, way) -> None:
    """From the error event, or from the last output of a program that fails without one."""
    event = f"""echo '{{"type":"failed","text":"{words}"}}'"""
    failure = scene.play(event if way == "an event" else f"echo '{words}'; exit 1").failure
    assert (failure.reason, failure.message, failure.retry_after_ms) == expected
    assert failure.retryable is (failure.reason is Reason.RATE_LIMITED)


def test_what_the_agent_did_is_no_complaint(scene) -> None:
    """A program that talks of rate limits in its work is not rate limited."""
    assert scene.play(f"echo 'slow down, who are you'; {_RESULT}").failure is None
    failure = scene.play("""echo 'slow down'; echo '{"type":"failed","text":"my own mistake"}'""").failure
    assert failure.reason is Reason.AGENT_FAILED
    assert failure.message.startswith("Robot reports an error: my own mistake")


def test_secrets_never_reach_the_log_or_the_usage(scene) -> None:
    """Not even when the program prints its environment."""
    outcome = scene.play(f'env; echo "$ROBOT_KEY" >&2; {_RESULT}')
    assert "ROBOT_KEY=*************\n" in scene.log.read_text()
    assert "a-long-secret" not in scene.log.read_text() + str(outcome)


@pytest.mark.parametrize(
    ("options", "reason", "message"),
    [
        ({"tools": []}, Reason.CONTRACT_REFUSED, "step 3 allows none of the tools of Robot"),
        ({"tools": ["write_file"]}, Reason.CONTRACT_REFUSED, "step 3 allows none of the tools of Robot"),
        (
            {"tools": ["read_file"], "profile": {"tools": {"needs": ["read_file", "run"]}}},
            Reason.CONTRACT_REFUSED,
            "Robot cannot be kept from run, which step 3 may not use",
        ),
        (
            {"confined": False},
            Reason.CONTRACT_REFUSED,
            "Robot could write outside its workspace: there is no sandbox on this machine",
        ),
        ({"environ": {}}, Reason.AUTH_FAILED, "Robot has no key: none of ROBOT_KEY is set"),
        ({"environ": {"ROBOT_KEY": ""}}, Reason.AUTH_FAILED, "Robot has no key: none of ROBOT_KEY is set"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_start(scene, options, reason, message) -> None:
    """Nothing is started and nothing is written."""
    failure = scene.play("touch started", **options).failure
    assert (failure.reason, failure.message, failure.retryable) == (reason, message, False)
    assert failure.hint
    assert scene.made() == {}
    assert list((scene.workspace.parent / "private").iterdir()) == []


def test_a_missing_program_and_a_slow_one_are_told_apart(scene) -> None:
    """By the reasons that every agent uses."""
    scene.program("true")
    (scene.root / "bin" / "robot").unlink()
    assert scene.play().failure.reason is Reason.AGENT_MISSING
    slow = scene.play("sleep 600", timeout_ms=300).failure
    assert (slow.reason, slow.message) == (Reason.TIMEOUT, "Robot was ended: timeout")


_REMEMBERS = f"""mkdir -p "$HOME/sessions/here"; echo "$ROBOT_KEY said" > "$HOME/sessions/here/s-1.json"; {_RESULT}"""


def test_a_retry_carries_on_with_the_session_where_it_is_asked_for(scene) -> None:
    """The session's files are in the new home, where the program looks for them, and hold no secret."""
    scene.play(_REMEMBERS)
    before = {"session_id": "s-1"}
    scene.play(f'echo "$@" > arguments; cat "$HOME"/sessions/-*/s-1.json > session; {_RESULT}', previous=before)
    assert scene.made()["arguments"] == "--tools Read,Change,Shell --resume s-1\n"
    assert scene.made()["session"] == "************* said\n"


@pytest.mark.parametrize(
    ("resumes", "session"), [(False, "s-1"), (True, "s-2"), (True, "../../../etc/passwd"), (True, "*"), (True, "")]
)
def test_without_a_session_to_take_up_a_new_one_begins(scene, resumes, session) -> None:
    """Not asked for, unknown, or an id that is none."""
    scene.play(_REMEMBERS)
    scene.play(f'echo "$@" > arguments; {_RESULT}', previous={"session_id": session}, resumes=resumes)
    assert scene.made()["arguments"] == "--tools Read,Change,Shell\n"


def test_a_link_in_the_place_of_a_session_is_not_followed(scene) -> None:
    """The program cannot have other files copied into the run."""
    secret = scene.root / "secret"
    secret.write_text("mine")
    scene.play(f"""mkdir -p "$HOME/sessions/x"; ln -s {secret} "$HOME/sessions/x/s-1.json"; {_RESULT}""")
    assert not (scene.root / "run" / "sessions").exists()


def test_the_bundled_profiles_are_the_same_class() -> None:
    """No program has code of its own."""
    folder = Path(profiles.__file__).parent
    words = [path.stem for path in (folder / "profiles").glob("*.toml")]
    code = "".join(path.read_text() for path in folder.glob("*.py")).lower()
    assert [word for word in words if f'"{word}"' in code] == []
