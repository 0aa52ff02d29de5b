"""What is written reads back as the same data."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import plan_text, tree, yaml_tokens
from harness.config.tree import Fault

LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
TEXTS = st.one_of(
    LINES,
    st.sampled_from(["yes", "no", "010", "1:30", "null", "~", "- a", "#", "steps:", "- title: x", "a: b", " a\n  b\n"]),
    st.lists(st.sampled_from(["", " ", "steps:", "  - title: x", "- title: x", "x", "\t"]), max_size=6).map("\n".join),
)
STEPS = st.fixed_dictionaries({"title": TEXTS, "description": TEXTS, "owns": st.lists(TEXTS, max_size=4)})
PLANS = st.fixed_dictionaries({"version": st.just(1), "goal": TEXTS, "steps": st.lists(STEPS, min_size=1, max_size=3)})


@given(PLANS)
@settings(max_examples=150, deadline=None)
def test_any_text_survives(plan) -> None:
    """Words that YAML would read otherwise, blocks, blanks at ends, keys inside texts."""
    written = plan_text.write(plan)
    try:
        read = tree.build(yaml_tokens.tokens(written))
    except Fault as fault:
        raise AssertionError(written) from fault
    assert (read.data, read.faults) == (plan, [])


def test_people_can_read_it() -> None:
    """Blocks for texts of several lines, short lists in a line, long ones below one another, a gap between steps."""
    plan = {
        "goal": "Do it",
        "steps": [
            {"title": "One", "description": "First this.\nThen that.\n", "owns": ["a", "b"]},
            {"title": "Two", "owns": ["x" * 60, "y" * 60], "needs": [0]},
        ],
    }
    assert plan_text.write(plan) == (
        "goal: Do it\n"
        "steps:\n"
        "  - title: One\n"
        "    description: |\n"
        "      First this.\n"
        "      Then that.\n"
        "    owns: [a, b]\n"
        "\n"
        "  - title: Two\n"
        "    owns:\n"
        f"      - {'x' * 60}\n"
        f"      - {'y' * 60}\n"
        "    needs: [0]\n"
    )
