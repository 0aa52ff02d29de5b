"""What an agent finds around it: a home of its own, the variables that settings name, and none of them in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.config.acp_program import AcpProgram
from harness.model.events import StepFact
from harness.model.late import dataclass
from harness.model.process import Means
from harness.model.verdict import Failure
from harness.ports import Job, Outcome
from harness.sandbox.redact import Redactor
from harness.tools.inside import Inside


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`job` is the attempt's own, but what it notes is masked."""

    job: Job
    env: Mapping[str, str]
    means: Means

    @classmethod
    def make(cls, program: AcpProgram, job: Job, environ: Mapping[str, str]) -> Surroundings:
        """Makes the home beside the workspace, and the directory of the report inside it."""
        from harness.agents import private_home  # noqa: PLC0415 - a plan without such an agent does not pay for it

        home = job.private / "home"
        places = private_home.make(home, (), {})
        Inside(job.workspace).make_directory_for(job.contract.report_path)
        given = {name: environ[name] for name in program.env if environ.get(name)}
        secrets = tuple(given.values())

        def note(kind: type[StepFact], **values: object) -> None:
            job.note(kind, **{name: _masked(value, secrets) for name, value in values.items()})

        return cls(replace(job, note=note), {**places, **given, **job.env}, Means(writable=(home,), secrets=secrets))

    def masked(self, failure: Failure | None, usage: Mapping[str, Any], exit_code: int | None = None) -> Outcome:
        """The outcome, without a secret in its words."""
        if failure is not None:
            failure = replace(failure, message=_masked(failure.message, self.means.secrets))
        return Outcome(failure, exit_code=exit_code, usage=_masked(dict(usage), self.means.secrets))


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        redactor = Redactor(secrets)
        return (redactor.feed(value.encode("utf-8", "surrogatepass")) + redactor.rest()).decode(
            "utf-8", "surrogatepass"
        )
    if isinstance(value, list):
        return [_masked(item, secrets) for item in value]
    if isinstance(value, dict):
        return {name: _masked(item, secrets) for name, item in value.items()}
    return value
