"""The independent checker: does not import the harness; reads log and repository and asserts I1 to I6.

`python tests/support/checker.py REPO [RUN]` prints what does not hold and exits 1, or exits 0.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

if not __package__:  # as a script, this folder is on the path, but the project is not
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support import evidence, log_claims, repo_claims
from tests.support.evidence import Log, Repository
from tests.support.parent import Fingerprint, changes, fingerprint

__all__ = ["Fingerprint", "check", "fingerprint"]


def check(repo: Path, run_id: str | None = None, *, before: Fingerprint | None = None) -> list[str]:
    """Every broken promise of one run, or of all, as sentences; an empty list is an intact repository.

    `before` is the fingerprint that the parent had before the run; without it, I2 is not looked at.
    """
    try:
        found = evidence.logs(repo, run_id)
    except FileNotFoundError:
        return [f"I3: there is no log at {repo / evidence.DATABASE}"]
    if not found:
        return [f"I3: there is no run {run_id or ''} in the log of {repo}"]
    repository = Repository(repo)
    problems = [f"{log.run_id}: {problem}" for log in found for problem in _of_run(log, repository)]
    problems += _store(repository)
    if before is not None:
        problems += _parent(before, repo, found)
    return problems


def _of_run(log: Log, repository: Repository) -> Iterator[str]:
    if not log.created:
        yield "I3: the log does not begin with run.created"
        return
    claims = [partial(claim, log) for claim in log_claims.CLAIMS]
    claims += [partial(claim, log, repository) for claim in repo_claims.CLAIMS]
    for claim in claims:
        try:
            yield from claim()
        except (KeyError, TypeError, IndexError, RuntimeError) as error:
            yield f"I3: the log does not fit together: {error!r}"


def _store(repository: Repository) -> Iterator[str]:
    try:
        repository.ask("fsck", "--full", "--no-dangling", "--no-progress")
    except RuntimeError as error:
        yield f"I1: {error}"


def _parent(before: Fingerprint, repo: Path, logs: list[Log]) -> Iterator[str]:
    """Only landing may touch the parent: the target, and the checkout that it is checked out in."""
    landed = {event["payload"]["target"] for log in logs for event in log.of("run.landed")}
    moved = (
        ("file ", "git index", "git logs/", "git ORIG_HEAD", *(f"ref {target}" for target in landed)) if landed else ()
    )
    for what, how in changes(before, fingerprint(repo)):
        if not what.startswith(moved):
            yield f"I2: the parent was touched: {what} {how}"


def main(arguments: list[str]) -> int:
    repo, *run = arguments
    problems = check(Path(repo), *run)
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
