"""What agents used: numbers add up, names do not, and what was replayed costs nothing."""

from __future__ import annotations

from harness.model import usage


def test_numbers_add_up_by_name() -> None:
    """Tokens stay whole, money stays what it looks like; truth values, texts and nested tables are no amounts."""
    used = [
        {"input_tokens": 3, "cost_usd": 0.1, "model": "m", "fast": True, "cache": {"read": 1}},
        {"input_tokens": 4, "cost_usd": 0.2},
        {"input_tokens": 100, "cost_usd": 9.0, "replayed": True},
    ]
    assert usage.total(used) == {"input_tokens": 7, "cost_usd": 0.3}
    assert usage.spent(used) == 0.3
    assert usage.spent([]) == 0.0
    assert usage.together(used, used[0])["model"] == "m"


def test_a_sentence_says_what_was_told() -> None:
    """Nothing for nothing; a replay is called one."""
    assert usage.sentence({}) == ""
    assert usage.sentence({"model": "m"}) == ""
    told = {"cost_usd": 0.25, "input_tokens": 12345, "output_tokens": 6}
    assert usage.sentence(told) == "$0.2500, 12,345 input tokens, 6 output tokens"
    assert usage.sentence({"cost_usd": 1, "replayed": True}) == "$1.0000 (replayed)"
