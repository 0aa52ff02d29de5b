"""A whole run against a plain git script that does the same work, start-up included."""

from __future__ import annotations

from bench.places import ROOT, Place, script
from bench.timing import Comparison, Contender, Spent, compare, spend
from fixtures import repos

PLAIN = "plain git script"
DEFAULT = "orchestrix run"
WARM = "orchestrix run, shared checkout there"
CHECKOUT = "orchestrix run --workspace checkout"
UNCONFINED = "orchestrix run --sandbox none"
LIMITS = {DEFAULT: 1.5}


def measure(place: Place, rounds: int) -> Comparison:
    """Raises RuntimeError when the two do not end in the same tree."""
    trees: dict[str, str] = {}

    def plain() -> Spent:
        repo = place.fresh("plain")
        script_file, worktrees = ROOT / "bench" / "plain.sh", place.root / "plain-worktrees"
        spent = spend(["bash", script_file, repo, worktrees, *place.commands], repo, place.env)
        trees[PLAIN] = repos.git(repo, "rev-parse", "HEAD^{tree}")
        return spent

    def orchestrix(name: str, *options: str) -> Contender:
        def contender() -> Spent:
            repo = place.fresh("orchestrix")
            spent = spend([*script(), "run", place.plan, "--run-id", "bench", *options], repo, place.env)
            trees[name] = repos.git(repo, "rev-parse", "refs/heads/orchestrix/bench/integration^{tree}")
            return spent

        return contender

    def warm() -> Spent:
        repo = place.fresh("orchestrix")
        spend([*script(), "run", place.plan, "--run-id", "before"], repo, place.env)
        return spend([*script(), "run", place.plan, "--run-id", "bench"], repo, place.env)

    contenders = {
        PLAIN: plain,
        DEFAULT: orchestrix(DEFAULT),
        WARM: warm,
        CHECKOUT: orchestrix(CHECKOUT, "--workspace", "checkout"),
        UNCONFINED: orchestrix(UNCONFINED, "--sandbox", "none"),
    }
    result = compare(contenders, LIMITS, rounds)
    if len(set(trees.values())) != 1:
        raise RuntimeError(f"the contenders did not do the same work: {trees}")
    return result
