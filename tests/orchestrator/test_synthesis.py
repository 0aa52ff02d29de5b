"""There is always a final answer, and its outcome is the verified one."""

from __future__ import annotations

import asyncio

from harness.model import limits
from harness.orchestrator.thinking import results, synthesis
from harness.orchestrator.thinking.results import Result
from harness.orchestrator.thinking.size import tokens
from harness.orchestrator.thinking.synthesis import Synthesis
from harness.ports import Usage
from tests.orchestrator.minds import Mind, fails, says

GOOD = Result("0", "Write it", completed=True, changed_paths=("a.txt", "b.txt"), report="I wrote it.")
BAD = Result("1", "Check it", completed=False, reason="check_failed", message="exit\n1", report="All is well!")
FACTS = (
    "1 of 2 steps completed.\n\n"
    "- step 0, Write it: completed\n"
    "  - `a.txt`\n"
    "  - `b.txt`\n"
    "- step 1, Check it: failed (check_failed: exit 1)"
)


def _synthesised(mind: Mind | None, *ended: Result) -> Synthesis:
    asking = None if mind is None else mind.asking()
    return asyncio.run(synthesis.synthesise(asking, "goal", ended))


def test_one_step_needs_no_model() -> None:
    """Its facts are the answer."""
    mind = Mind()
    assert (
        _synthesised(mind, GOOD).text
        == "1 of 1 steps completed.\n\n- step 0, Write it: completed\n  - `a.txt`\n  - `b.txt`"
    )
    assert mind.prompts == []


def test_a_models_answer_ends_with_the_verified_outcome() -> None:
    """One call; the model cannot claim that everything succeeded."""
    mind = Mind(says("SynthesisAnswer", answer="Everything succeeded! "))
    found = _synthesised(mind, GOOD, BAD)
    assert found == Synthesis("Everything succeeded!\n\n1 of 2 steps completed.", "model", (), Usage(1, 10, 5, 0.01))
    assert "step 1, Check it: failed (check_failed: exit 1)\nAll is well!" in mind.prompts[0]


def test_a_failure_is_followed_by_a_smaller_question() -> None:
    """The reports are cut, the headlines stay."""
    long = [Result(str(n), f"Part {n}", completed=True, report="word " * 20_000) for n in range(3)]
    mind = Mind(fails("context_full"), says("SynthesisAnswer", answer="Short."))
    found = _synthesised(mind, *long)
    assert (found.source, found.problems) == ("smaller", ("context_full: as scripted",))
    first, second = (tokens(prompt) for prompt in mind.prompts)
    assert first <= limits.SYNTHESIS_TOKENS + 200
    assert second <= limits.SYNTHESIS_REDUCED_TOKENS + 200
    assert all(f"step {n}, Part {n}: completed" in mind.prompts[1] for n in range(3))


def test_facts_are_the_last_resort() -> None:
    """A model that fails twice, and no model at all."""
    mind = Mind(fails("timeout"), fails("rate_limit"))
    found = _synthesised(mind, GOOD, BAD)
    assert found == Synthesis(FACTS, "facts", ("timeout: as scripted", "rate_limit: as scripted"))
    assert _synthesised(None, GOOD, BAD) == Synthesis(FACTS, "facts")


def test_many_changed_files_are_counted() -> None:
    """Twenty are named."""
    wide = Result("0", "Wide", completed=True, changed_paths=tuple(f"f{n}" for n in range(25)))
    assert _synthesised(None, wide).text.endswith("  - `f19`\n  - and 5 more files")


def test_reports_share_the_room_equally() -> None:
    """A loud report does not silence the others."""
    ended = [
        Result("0", "Loud", completed=True, report="x" * 100_000),
        Result("1", "Quiet", completed=True, report="yes"),
    ]
    text = results.told(ended, 500)
    assert text.endswith("step 1, Quiet: completed\nyes")
    assert tokens(text) <= 500
