"""A compact map of a repository for a planner: sizes, languages, tests, tree, and the start of AGENTS.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import PurePosixPath

from harness.model import limits
from harness.model.late import dataclass
from harness.model.visible import visible
from harness.orchestrator.thinking.size import cut, tokens

INSTRUCTIONS = "AGENTS.md"
_DEEPEST = 12
_LANGUAGES = {
    **dict.fromkeys(("py", "pyi"), "Python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "JavaScript"),
    **dict.fromkeys(("ts", "tsx"), "TypeScript"),
    **dict.fromkeys(("c", "h"), "C"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hpp"), "C++"),
    **dict.fromkeys(("sh", "bash"), "Shell"),
    **dict.fromkeys(("yaml", "yml"), "YAML"),
    **dict.fromkeys(("md", "rst"), "Prose"),
    "go": "Go",
    "rs": "Rust",
    "java": "Java",
    "kt": "Kotlin",
    "rb": "Ruby",
    "php": "PHP",
    "cs": "C#",
    "swift": "Swift",
    "sql": "SQL",
    "html": "HTML",
    "css": "CSS",
    "json": "JSON",
    "toml": "TOML",
}


def build(paths: Sequence[str], instructions: str = "", *, budget: int = limits.MAP_TOKENS) -> str:
    """The map of these tracked paths; the same ones give the same text, never above `budget` tokens.

    `instructions` is the text of AGENTS.md, of which at most a quarter of the budget is shown.
    """
    parts = [f"files: {len(paths)}", *_languages(paths), *_tests(paths)]
    if instructions.strip():
        parts.append(f"start of {INSTRUCTIONS}:\n" + _indented(cut(visible(instructions.strip()), budget // 4)))
    left = budget - tokens("\n".join(parts)) - tokens("\ntree:\n")
    parts.append("tree:\n" + _tree(paths, max(left, 0)))
    return cut("\n".join(parts), budget)


def _languages(paths: Sequence[str]) -> Iterator[str]:
    suffixes = Counter(_LANGUAGES.get(PurePosixPath(path).suffix.removeprefix(".").lower()) for path in paths)
    del suffixes[None]
    ranked = sorted(suffixes.items(), key=lambda found: (-found[1], found[0]))
    if ranked:
        yield "languages: " + ", ".join(f"{name} {count}" for name, count in ranked[:8])


def _tests(paths: Sequence[str]) -> Iterator[str]:
    folders = Counter(folder for path in paths if (folder := _test_folder(path)) is not None)
    ranked = sorted(folders.items(), key=lambda found: (-found[1], found[0]))
    if ranked:
        yield "tests: " + ", ".join(f"{_shown(folder) or '.'} {count}" for folder, count in ranked[:8])


def _test_folder(path: str) -> str | None:
    """The folder that a test belongs to, by the names that test runners look for."""
    *folders, name = path.split("/")
    for depth, folder in enumerate(folders, 1):
        if folder.lower() in {"test", "tests", "spec", "__tests__"}:
            return "/".join(folders[:depth])
    stem = name.split(".", 1)[0].lower()
    named = stem.startswith("test_") or stem.endswith(("_test", "_spec")) or ".test." in name or ".spec." in name
    return "/".join(folders) if named else None


@dataclass(slots=True)
class _Folder:
    files: int = 0
    folders: dict[str, _Folder] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)


def _tree(paths: Sequence[str], budget: int) -> str:
    """As many levels as fit; if not even the first does, its start."""
    root = _Folder()
    for path in sorted(paths):
        *folders, name = path.split("/")
        here = root
        here.files += 1
        for folder in folders:
            here = here.folders.setdefault(folder, _Folder())
            here.files += 1
        here.names.append(name)
    shown = "\n".join(_lines(root, 1, ""))
    for depth in range(2, _DEEPEST + 1):
        deeper = "\n".join(_lines(root, depth, ""))
        if tokens(deeper) > budget:
            break
        shown = deeper
    return cut(shown, budget)


def _lines(folder: _Folder, depth: int, indent: str) -> Iterator[str]:
    for name in sorted(folder.folders):
        below = folder.folders[name]
        yield f"{indent}  {_shown(name)}/ ({below.files})"
        if depth > 1:
            yield from _lines(below, depth - 1, f"{indent}  ")
    yield from (f"{indent}  {_shown(name)}" for name in folder.names)


def _shown(name: str) -> str:
    """A file name on one line, whatever characters it holds."""
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
