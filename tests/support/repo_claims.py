"""Claims about the repository in the light of the log: nothing lost, merges as logged, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.support.evidence import Log, Repository, Row

SHOWN_PATHS = 10_000  # an event lists no more


def integration(log: Log, repo: Repository) -> Iterator[str]:
    """The integration ref is base plus the logged merges, in their order, each of a snapshot of the step's start."""
    created = log.created
    merges = [event["payload"] for event in log.of("agent.worktree_merged")]
    tip = repo.refs.get(created["integration_ref"])
    if tip is None:
        if log.of("run.started") and (log.ended or merges):
            yield f"I1: {created['integration_ref']} is gone"
        return
    logged = [merge["merge_commit"] for merge in merges]
    found = repo.first_parents(tip, created["base"])
    if found != logged and found not in _under_way(log, logged):
        yield f"I5: {created['integration_ref']} holds {_short(found)}, but the log merged {_short(logged)}"
    starts = {event["payload"]["sub_agent_id"]: event["payload"] for event in log.of("agent.subagent_started")}
    previous = created["base"]
    for merge in merges:
        yield from _merge(merge, previous, starts.get(merge["sub_agent_id"], {}).get("start_point"), repo)
        previous = merge["merge_commit"]


def _under_way(log: Log, logged: list[str]) -> list[list[str]]:
    """A run that has not ended may have died between the move of the ref and its line in the log."""
    intended = log.of("integration.started")
    if log.ended or not intended:
        return []
    return [[*logged, intended[-1]["payload"]["merge_commit"]]]


def _merge(merge: Row, previous: str, start: str | None, repo: Repository) -> Iterator[str]:
    name = merge["sub_agent_id"]
    made, snapshot = (repo.reachable.get(merge[key]) for key in ("merge_commit", "commit"))
    if merge["previous"] != previous:
        yield f"I5: {name} was merged onto {merge['previous'][:12]}, but the head was {previous[:12]}"
    if made is None or snapshot is None:
        yield f"I1: the merge of {name} or its snapshot is not reachable from any ref"
        return
    if made.parents != (merge["previous"], merge["commit"]):
        yield f"I5: the merge commit of {name} has parents {_short(made.parents)}"
    if made.tree != merge["tree"]:
        yield f"I6: the merge commit of {name} holds tree {made.tree[:12]}, the log says {merge['tree'][:12]}"
    nested = merge["commit"] in repo.refs.values() and bool(repo.first_parents(merge["commit"], start or ""))
    if snapshot.parents != (start,) and not nested:
        yield f"I5: the snapshot of {name} does not stand on its start point {(start or 'nothing')[:12]}"


def snapshots(log: Log, repo: Repository) -> Iterator[str]:
    """Every snapshot with work in it, and every commit that an agent made, is reachable and as the log tells it."""
    starts = {event["payload"]["sub_agent_id"]: event["payload"] for event in log.of("agent.subagent_started")}
    for event in log.of("snapshot.taken"):
        taken = event["payload"]
        name = f"attempt {taken['attempt']} of {taken['sub_agent_id']}"
        for commit in taken["agent_commits"]:
            if commit not in repo.reachable:
                yield f"I1: commit {commit[:12]} that {name} made is not reachable from any ref"
        if taken["commit"] not in repo.reachable:
            if taken["changed_paths"] and not _on_disk(log, taken["sub_agent_id"]):
                yield f"I1: snapshot {taken['commit'][:12]} ({name}) is not reachable from any ref"
            continue
        if repo.reachable[taken["commit"]].tree != taken["tree"]:
            yield f"I3: snapshot {taken['commit'][:12]} ({name}) does not hold the tree that the log names"
        yield from _paths(taken, starts[taken["sub_agent_id"]]["start_point"], name, repo)


def _on_disk(log: Log, sub_agent: str) -> bool:
    """A run that has not ended may have died before it could point a ref; the files are still where they were."""
    made = [event["payload"] for event in log.of("workspace.preparing")]
    return not log.ended and any(Path(fact["path"]).is_dir() for fact in made if fact["sub_agent_id"] == sub_agent)


def _paths(taken: Row, start: str, name: str, repo: Repository) -> Iterator[str]:
    differing = repo.differing(start, taken["commit"])
    listed = set(taken["changed_paths"])
    if (
        taken["changed_total"] != len(differing)
        or not listed <= differing
        or len(listed) != min(len(differing), SHOWN_PATHS)
    ):
        yield f"I3: {name} changed {_short(sorted(differing), 99)}, but the log lists {_short(sorted(listed), 99)}"


def kept_work(log: Log, repo: Repository) -> Iterator[str]:
    """What was kept is where the log says; a failed step with work names the ref that holds it."""
    kept = {event["payload"]["ref"]: event["payload"] for event in log.of("work.kept")}
    for ref, fact in kept.items():
        if repo.refs.get(ref) != fact["commit"]:
            yield f"I1: {ref} should hold {fact['commit'][:12]}, but is at {(repo.refs.get(ref) or 'nothing')[:12]}"
    work: dict[str, Row] = {}
    failed: dict[str, str | None] = {}
    for event in log.events:
        payload = event["payload"]
        if event["type"] == "snapshot.taken":
            work[payload["sub_agent_id"]] = payload
        elif event["type"] in ("agent.subagent_failed", "agent.integration_failed"):
            failed[payload["sub_agent_id"]] = payload["kept_ref"]
    for name, ref in failed.items():
        taken = work.get(name)
        if taken is None or not taken["changed_paths"]:
            continue
        if ref is None:
            yield f"I1: {name} failed with changes in {_short(taken['changed_paths'], 99)}, but names no kept ref"
        elif kept.get(ref, {}).get("commit") != taken["commit"]:
            yield f"I1: {name} names {ref}, which does not hold its last snapshot {taken['commit'][:12]}"


def landing(log: Log, repo: Repository) -> Iterator[str]:
    """A landed target holds what was integrated; nobody has moved it back behind that, unless the log says so."""
    standing: dict[str, str] = {}
    gated = [log.created["base"], *(event["payload"]["merge_commit"] for event in log.of("agent.worktree_merged"))]
    for event in log.of("run.landed", "run.landing_undone"):
        target, new = event["payload"]["target"], event["payload"]["new"]
        if event["type"] == "run.landing_undone":
            standing.pop(target, None)
            continue
        standing[target] = new
        if new not in gated:
            yield f"I6: {target} was landed at {new[:12]}, which no gate passed"
    for target, new in standing.items():
        if target not in repo.refs or repo.ask("rev-list", "--max-count=1", new, f"^{repo.refs[target]}"):
            yield f"I2: {target} does not hold the landed {new[:12]}"


def leftovers(log: Log, repo: Repository) -> Iterator[str]:
    """An ended run leaves no workspace on disk and no worktree in git's books, unless it was asked to keep them."""
    if not log.ended or log.created["options"].get("keep"):
        return
    made = {Path(event["payload"]["path"]) for event in log.of("workspace.preparing")}
    removed = {Path(event["payload"]["path"]) for event in log.of("workspace.removed")}
    yield from (f"I3: the log never says that {path.name} was removed" for path in sorted(made - removed))
    for folder in sorted({path.parent for path in made}):
        yield from (f"I8: {path} is left on disk" for path in sorted(folder.glob("*")))
    admin = repo.common_dir / "worktrees"
    yield from (f"I8: worktree entry {path.name} is left" for path in sorted(admin.glob(f"orchestrix.{log.run_id}.*")))


def _short(names: object, length: int = 12) -> str:
    shown = [str(name)[:length] for name in names]  # type: ignore[attr-defined]  # any collection of names
    return f"[{', '.join(shown[:10])}{', ...' if len(shown) > 10 else ''}]"


CLAIMS = (integration, snapshots, kept_work, landing, leftovers)
