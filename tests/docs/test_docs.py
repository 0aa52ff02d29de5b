"""What is written for users is executed: commands run, plans validate, links lead somewhere, nothing private is in it."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from harness.config import plan_file
from tests.docs import pages
from tests.docs.pages import ROOT

GUIDES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
PRIVATE = re.compile(
    rb"/(?:home|root|Users|work)/(?!u\b)[a-z]|(?:pypi|pythonhosted|npmjs)\.(?:org|com)|BEGIN [A-Z ]*PRIVATE KEY"
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _plans() -> list:
    return [
        pytest.param(block.body, id=f"{_name(page)}-{number}")
        for page in pages.markdown()
        for number, block in enumerate(pages.blocks(page))
        if block.language == "yaml" and re.search(r"^steps:", block.body, re.MULTILINE)
    ]


class Reader:
    """Somebody who follows a page: writes its files, types its commands, stays in the directory that they lead to."""

    def __init__(self, start: Path, programs: Path) -> None:
        self.here = start
        self._after = programs / "cwd"
        programs.mkdir()
        shim = programs / "orchestrix"
        shim.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m harness "$@"\n')
        shim.chmod(0o755)
        self._prologue = f"PATH='{programs}':$PATH; trap 'pwd > \"{self._after}\"' EXIT; set -e\n"

    def has_repository(self) -> None:
        """A repository with one commit, as the guides assume."""
        self.types(
            "git init -q -b main && git config user.name Ada && git config user.email ada@example.org\n"
            "mkdir src && echo start > src/start.txt && git add . && git commit -q -m Start"
        )

    def writes(self, name: str, content: str) -> None:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def types(self, commands: str, expected: int = 0) -> None:
        done = subprocess.run(
            ["sh", "-c", self._prologue + commands], cwd=self.here, capture_output=True, text=True, check=False
        )
        assert done.returncode == expected, f"{commands}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        self.here = Path(self._after.read_text().strip())


@pytest.mark.parametrize(
    "page", [page for page in GUIDES if any("runnable" in block.notes for block in pages.blocks(page))], ids=_name
)
def test_a_reader_who_follows_the_page_gets_what_it_says(page, tmp_path):
    """Every runnable block ends with the exit code that the page gives it, in order."""
    start = tmp_path / "project"
    start.mkdir()
    reader = Reader(start, tmp_path / "bin")
    if page.parent.name != "tutorial":
        reader.has_repository()
    for block in pages.blocks(page):
        if "file" in block.notes:
            reader.writes(block.notes["file"], block.body)
        elif "runnable" in block.notes:
            reader.types(block.body, int(block.notes.get("exit", "0")))


@pytest.mark.parametrize("text", _plans())
def test_every_plan_in_the_documents_is_valid(text, tmp_path):
    """A reader can copy any plan."""
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    plan_file.load(path)


def test_json_blocks_are_json():
    """Samples of the machine surface parse."""
    for page in pages.markdown():
        for block in pages.blocks(page):
            if block.language == "json":
                for line in block.body.splitlines():
                    json.loads(line)


@pytest.mark.parametrize("page", pages.markdown(), ids=_name)
def test_links_lead_to_files_and_headings_that_exist(page):
    """Relative links resolve, anchors included."""
    broken = []
    for link in pages.links(page):
        place, _, anchor = link.partition("#")
        target = page.parent / place if place else page
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in pages.anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme():
    """No page is an orphan."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            waiting += [page.parent / link.partition("#")[0] for link in pages.links(page) if "://" not in link]
    documents = {page for page in pages.markdown() if page.is_relative_to(ROOT / "docs") or page.parent == ROOT}
    assert sorted(map(_name, documents - seen)) == []


def test_the_command_page_is_what_help_says():
    """`python docs/generate_cli.py` would change nothing."""
    made = runpy.run_path(str(ROOT / "docs" / "generate_cli.py"))["page"]()
    assert (ROOT / "docs" / "reference" / "cli.md").read_text() == made


def test_the_page_of_agent_programs_is_what_the_profiles_say():
    """`python docs/generate_agents.py` would change nothing."""
    made = runpy.run_path(str(ROOT / "docs" / "generate_agents.py"))["page"]()
    assert (ROOT / "docs" / "reference" / "agents.md").read_text() == made


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "docs/index.md", "docs/explanation/how-a-run-works.md"]
)
def test_pages_about_structure_have_a_picture(name):
    """A Mermaid block, with a kind that renders."""
    pictures = [block.body for block in pages.blocks(ROOT / name) if block.language == "mermaid"]
    assert pictures
    assert all(re.match(r"(flowchart (LR|TD)|sequenceDiagram|stateDiagram-v2)\n", body) for body in pictures)


def test_the_readme_has_exactly_two_set_up_commands():
    """One runs the demo, one passes the tests; both exist and can be executed."""
    commands = [block.body.strip() for block in pages.blocks(ROOT / "README.md") if block.body.startswith(".ci/")]
    assert commands == [".ci/demo", ".ci/test"]
    assert all((ROOT / command).stat().st_mode & 0o111 for command in commands)


def test_no_file_names_a_machine_a_registry_or_a_key():
    """What is committed could have been written anywhere."""
    this = Path(__file__).resolve()
    found = {_name(path): PRIVATE.findall(path.read_bytes()) for path in pages.committed() if path.resolve() != this}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_lock_files_hold_versions_and_hashes_only():
    """No address of a package, index or host."""
    for lock in (ROOT / ".ci").glob("*.lock"):
        lines = [line for line in lock.read_text().splitlines() if line.strip()]
        odd = [
            line
            for line in lines
            if not re.fullmatch(
                r"[\w.\[\],-]+==[\w.+!]+( ; [^/]+)?( \\)?|    --hash=sha256:[0-9a-f]{64}( \\)?|#.*", line
            )
        ]
        assert odd == []
        assert not any("://" in line for line in lines)
