"""Markdown as the tests read it: fences, headings, links and the names in tables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=ticks)$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fence: `language` is the first word of its info string, `notes` are the others (`runnable`, `exit=4`)."""

    language: str
    notes: dict[str, str]
    body: str


def committed() -> list[Path]:
    """Every file that is committed or could be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def markdown() -> list[Path]:
    return sorted(path for path in committed() if path.suffix == ".md" and "fixtures" not in path.parts)


def blocks(page: Path) -> list[Block]:
    found = []
    for fence in _FENCE.finditer(page.read_text()):
        language, *notes = fence["info"].split() or [""]
        found.append(
            Block(language, {key: value for key, _, value in (note.partition("=") for note in notes)}, fence["body"])
        )
    return found


def links(page: Path) -> list[str]:
    return _LINK.findall(_prose(page))


def anchors(page: Path) -> set[str]:
    """The names that headings get: lower case, words joined by dashes."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(_prose(page))}


def table(page: Path, heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading: the name in backticks of the first cell, and the other cells."""
    _, found, rest = page.read_text().partition(f"# {heading}\n")
    assert found, f"{page.name} has no heading {heading!r}"
    rows = re.search(r"(?:^\|.*\n)+", rest.split("\n#", 1)[0], re.MULTILINE)
    lines = rows[0].splitlines()[2:] if rows else []
    cells = [[cell.strip() for cell in re.split(r" \|(?= |$)", line.removeprefix("|"))] for line in lines]
    return {row[0].strip("` "): row[1:] for row in cells}


def headings(page: Path) -> list[str]:
    return _HEADING.findall(_prose(page))


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())
