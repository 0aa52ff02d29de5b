"""The agent that is any program with a profile: started bare, bound by the contract, believed only in its result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from harness.agents import private_home
from harness.agents.agent_output import AgentOutput
from harness.agents.profile import Profile, contract_tools, filled
from harness.model import limits
from harness.model.late import dataclass
from harness.model.process import Ending, Means, ProcessResult
from harness.model.verdict import Failure, Reason
from harness.ports import Execute, Job, Outcome, Tools
from harness.tools.inside import Inside

_ENDINGS = {
    Ending.TIMEOUT: (Reason.TIMEOUT, "raise the step's `timeout`, or make the step smaller"),
    Ending.INACTIVITY: (Reason.INACTIVITY_TIMEOUT, "raise the step's `inactivity_timeout`"),
    Ending.LIMIT: (Reason.LIMIT_EXCEEDED, ""),
    Ending.NOT_FOUND: (Reason.AGENT_MISSING, "install the program; `orchestrix agents` shows what is there"),
}
_DOCUMENT_BYTES = 64 * limits.MIB


@dataclass(frozen=True, slots=True)
class CliAgent:
    """One profile on this machine: the user's environment, a model if the settings name one."""

    profile: Profile
    environ: Mapping[str, str]
    model: str = ""
    resumes: bool = False

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:  # noqa: ARG002 - it has its own means
        """Runs the program in the workspace with a home of its own; the tree and the checks judge what it did."""
        refusal = self.refusal(job)
        if refusal is not None:
            return Outcome(refusal)
        attempt = _Attempt(self, job)
        result = await execute(
            attempt.argv,
            purpose="agent",
            stdin=attempt.stdin,
            env=attempt.env,
            means=Means(writable=(attempt.home,), secrets=attempt.secrets, until=attempt.told.line),
        )
        attempt.read(result)
        usage = {"agent": self.profile.name, **attempt.told.usage}
        exit_code = (
            None if result.ending is Ending.ANSWERED else result.exit_code
        )  # then the signal was the harness' own
        return Outcome(attempt.failure(result), exit_code=exit_code, usage=usage)

    def refusal(self, job: Job) -> Failure | None:
        """Why the program may not even start: what it would do that the contract does not allow and nothing prevents."""
        profile, allowed = self.profile, contract_tools(job.contract.permissions.allowed_tools)
        missing = profile.missing(allowed)
        if missing:
            return Failure(
                Reason.CONTRACT_REFUSED,
                f"{profile.title} cannot be kept from {', '.join(missing)}, which step {job.step} may not use",
                hint="add it to the step's `allowed_tools`, or choose an agent that holds to a list of tools",
            )
        if profile.lists_tools and not profile.granted(allowed):
            return Failure(
                Reason.CONTRACT_REFUSED,
                f"step {job.step} allows none of the tools of {profile.title}",
                hint=f"its tools need {', '.join(sorted({tool for needed in profile.tools.grants.values() for tool in needed}))}",
            )
        if not job.confined and job.contract.sandbox != "none":
            return Failure(
                Reason.CONTRACT_REFUSED,
                f"{profile.title} could write outside its workspace: there is no sandbox on this machine",
                hint="install bubblewrap (see `orchestrix doctor`), or accept it with `--sandbox none`",
            )
        return self._without_key(job)

    def _without_key(self, job: Job) -> Failure | None:
        wanted = self.profile.environment.one_of
        if not wanted or any(self.environ.get(name) or job.env.get(name) for name in wanted):
            return None
        return Failure(
            Reason.AUTH_FAILED,
            f"{self.profile.title} has no key: none of {', '.join(wanted)} is set",
            hint="set one of them; a login in your home is not visible to it",
        )


@dataclass(slots=True)
class _Attempt:
    """One start of the program, from its argument list to what it told."""

    agent: CliAgent
    job: Job
    home: Path = field(init=False)
    argv: list[str] = field(init=False)
    env: dict[str, str] = field(init=False)
    told: AgentOutput = field(init=False)

    def __post_init__(self) -> None:
        profile, job = self.agent.profile, self.job
        self.home = job.private / "home"
        self.told = AgentOutput(profile.output)
        passed = self._passed()
        values = self._values(passed)
        places = private_home.make(self.home, profile.files, values)
        (self.home / "prompt.md").touch(0o600)
        (self.home / "prompt.md").write_bytes(self._prompt)
        Inside(job.workspace).make_directory_for(job.contract.report_path)
        constant = {name: filled(value, values) for name, value in profile.environment.set.items()}
        self.env = {**passed, **job.env, **places, **constant}
        self.argv = self._arguments(values)

    @property
    def _prompt(self) -> bytes:
        return self.job.prompt.encode("utf-8", "replace")

    @property
    def stdin(self) -> bytes:
        return self._prompt if self.agent.profile.call.prompt == "stdin" else b""

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(self.env[name] for name in self.agent.profile.environment.secrets if self.env.get(name))

    def _passed(self) -> dict[str, str]:
        known = self.agent.profile.environment
        environ = self.agent.environ
        return {name: environ[name] for name in (*known.variables, *known.secrets) if environ.get(name)}

    def _values(self, passed: Mapping[str, str]) -> dict[str, str]:
        """What the templates of the profile may name; a secret is not among it."""
        profile, job = self.agent.profile, self.job
        granted = profile.granted(contract_tools(job.contract.permissions.allowed_tools))
        shown = {**passed, **job.env}
        return {
            "home": str(self.home),
            "workspace": str(job.workspace),
            "slug": private_home.slug(job.workspace),
            "model": self.agent.model,
            "prompt": self._prompt.decode(),
            "prompt_file": str(self.home / "prompt.md"),
            "session": str(job.previous_usage.get("session_id", "")),
            "tools": profile.tools.join.join(filled(profile.tools.each, {"tool": tool}) for tool in granted),
            **{f"env:{name}": shown[name] for name in profile.environment.variables if name in shown},
        }

    def _arguments(self, values: Mapping[str, str]) -> list[str]:
        call = self.agent.profile.call
        words = list(call.arguments)
        words += call.model if self.agent.model else ()
        for given in call.given:
            words += given.arguments if self.env.get(given.variable) else ()
        words += self._resumed(values)
        return [self.agent.profile.program, *(filled(word, dict(values)) for word in words)]

    def _resumed(self, values: Mapping[str, str]) -> list[str]:
        session, before = self.agent.profile.session, values["session"]
        if not self.agent.resumes or session is None or not before:
            return []
        kept = _kept_sessions(self.job)
        return session.arguments if private_home.restore_session(kept, session, before, self.home, values) else []

    def read(self, result: ProcessResult) -> None:
        """Takes in what the program left besides its lines, and keeps its session for a retry."""
        output = self.agent.profile.output
        self.told.text(result.output_tail, output.text)
        if output.document is not None:
            path = self.home / output.document.path
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _DOCUMENT_BYTES:
                self.told.document(path.read_text(encoding="utf-8", errors="replace"), output.document)
        session = self.agent.profile.session
        if session is not None and self.told.session:
            kept = _kept_sessions(self.job)
            private_home.keep_session(self.home, session, self.told.session, kept, self.secrets)

    def failure(self, result: ProcessResult) -> Failure | None:
        """Why the attempt failed by the program's own account; its result counts, its exit code only without one."""
        profile, told = self.agent.profile, self.told
        if result.ending in _ENDINGS and not told.ended:
            reason, hint = _ENDINGS[result.ending]
            words = result.message or f"{profile.title} was ended: {str(result.ending).replace('_', ' ')}"
            return Failure(reason, words, hint=hint)
        if told.ended and not told.failed:
            return None
        if not told.failed and result.ok and not profile.output.has_result:
            return None
        said = told.error or result.output_tail
        return _complaint(profile, said) or _plain_failure(profile, told, result)


def _kept_sessions(job: Job) -> Path:
    """Beside the logs of the run: a workspace and its private directory go away, a session is wanted later."""
    return job.log.parent.parent / "sessions" / f"step-{job.contract.parent.step_idx}"


def _complaint(profile: Profile, said: str) -> Failure | None:
    known, title = profile.complaints, profile.title
    if _matches(known.auth_failed, said):
        words = f"{title} was not let in by the model's service"
        return Failure(Reason.AUTH_FAILED, words, hint=f"check {_keys(profile)}; it said: {_excerpt(said, 200)}")
    if _matches(known.context_full, said):
        words = f"the step does not fit into the context of {title}'s model"
        return Failure(Reason.CONTEXT_FULL, words, hint="make the step smaller, or choose another model")
    if _matches(known.rate_limited, said):
        after = _matches(known.retry_after, said)
        pause = int(float(after[1]) * 1000) if after else None
        return Failure(Reason.RATE_LIMITED, f"{title} asks to be tried again later", retry_after_ms=pause)
    return None


def _keys(profile: Profile) -> str:
    return ", ".join(profile.environment.one_of or profile.environment.secrets) or "its key"


def _matches(patterns: list[str], text: str) -> re.Match[str] | None:
    found = (re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
    return next((match for match in found if match), None)


def _plain_failure(profile: Profile, told: AgentOutput, result: ProcessResult) -> Failure:
    if told.failed:
        return Failure(Reason.AGENT_FAILED, f"{profile.title} reports an error: {_excerpt(told.error)}")
    said = _excerpt(result.output_tail)
    how = f"exited with {result.exit_code}" + ("" if not result.ok else " without its result")
    return Failure(Reason.AGENT_FAILED, f"{profile.title} {how}" + (f"; it said last: {said}" if said else ""))


def _excerpt(text: str, characters: int = 1000) -> str:
    return text.strip()[:characters]
