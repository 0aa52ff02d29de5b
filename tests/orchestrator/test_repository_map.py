"""The map of a repository is small, true and the same every time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.orchestrator.thinking import repository_map
from harness.orchestrator.thinking.size import tokens

PATHS = [
    "README.md",
    "AGENTS.md",
    "src/app/main.py",
    "src/app/views.py",
    "src/app/templates/base.html",
    "web/index.test.ts",
    "web/index.ts",
    "tests/test_main.py",
    "tests/unit/test_views.py",
]


def test_a_small_repository_is_shown_whole() -> None:
    """Counts, languages, tests, instructions and every file."""
    assert repository_map.build(PATHS, "# Rules\nUse tabs.\n") == (
        "files: 9\n"
        "languages: Python 4, Prose 2, TypeScript 2, HTML 1\n"
        "tests: tests 2, web 1\n"
        "start of AGENTS.md:\n"
        "  # Rules\n"
        "  Use tabs.\n"
        "tree:\n"
        "  src/ (3)\n"
        "    app/ (3)\n"
        "      templates/ (1)\n"
        "        base.html\n"
        "      main.py\n"
        "      views.py\n"
        "  tests/ (2)\n"
        "    unit/ (1)\n"
        "      test_views.py\n"
        "    test_main.py\n"
        "  web/ (2)\n"
        "    index.test.ts\n"
        "    index.ts\n"
        "  AGENTS.md\n"
        "  README.md"
    )


def test_the_order_of_the_listing_does_not_matter() -> None:
    """The same files give the same map."""
    shuffled = random.Random(5).sample(PATHS, len(PATHS))
    assert repository_map.build(shuffled) == repository_map.build(PATHS)


def test_a_large_repository_is_shown_as_deep_as_fits() -> None:
    """Folders with their counts stand for what is below."""
    paths = [f"pkg{number % 7}/sub{number % 70}/file{number}.py" for number in range(7_000)]
    text = repository_map.build(paths, budget=600)
    assert "  pkg3/ (1000)\n    sub10/ (100)\n" in text
    assert "file3.py" not in text
    assert tokens(text) <= 600


def test_an_empty_repository_has_a_map() -> None:
    assert repository_map.build([]) == "files: 0\ntree:\n"


def test_instructions_take_at_most_a_quarter() -> None:
    """The tree is not crowded out."""
    text = repository_map.build(PATHS, "rule\n" * 100_000, budget=400)
    assert "[cut]" in text
    assert "README.md" in text
    assert tokens(text) <= 400


@pytest.mark.parametrize("name", ["a\nfiles: 0", "a\tb", "a\x1b[2J", "a\u202eb", "a\udc80b"])
def test_a_name_stays_on_its_line(name) -> None:
    """Whatever bytes a file name holds, it is one line of printable text."""
    text = repository_map.build([name])
    assert len(text.splitlines()) == 3
    assert text.replace("\n", "").isprintable()


@given(
    st.lists(st.text(st.characters(exclude_characters="\x00"), min_size=1, max_size=300), max_size=50, unique=True),
    st.text(max_size=2_000),
    st.integers(1, 2_000),
)
@settings(max_examples=60, deadline=None)
def test_the_budget_holds_for_any_listing(paths, instructions, budget) -> None:
    """Never above it, whatever is listed."""
    assert tokens(repository_map.build(paths, instructions, budget=budget)) <= max(budget, 2)
