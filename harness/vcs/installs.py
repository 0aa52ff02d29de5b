"""Finds installed packages in linked or copied paths that lead back to the checkout's own files.

Checks in such a workspace would import and test the checkout instead of the step's work. Editable installs of Python
(`*.pth`, finder modules, `*.egg-link`, `direct_url.json`), linked packages of npm, pnpm and yarn workspaces, and the
autoloader and path repositories of Composer lead back. Only the first level of each package folder is read (two where
packages have a scope), so that a large one costs milliseconds.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.errors import SharedInstall
from harness.model.late import dataclass
from harness.vcs import git
from harness.vcs.prepare import INCLUDE_FILE

_PYTHON = ("site-packages", "dist-packages")
_PACKAGES = (*_PYTHON, "node_modules", "vendor")
_HIDDEN = (".bin", ".pnpm/node_modules")  # of node_modules: programs of linked packages, and what pnpm hoists
_DEPTH = 6  # of a package folder below a linked path: .tox/py311/lib/python3.11/site-packages has five
_FOLDERS = 2_000  # that are looked through for package folders
_BYTES = 1024 * 1024  # of one file
_COPIED = (
    *(f":(glob)**/{name}" for name in ("*.pth", "*.egg-link", "direct_url.json", "*editable*.py")),
    ":(glob)**/node_modules/*",
    ":(glob)**/node_modules/@*/*",
)
_COMPOSER = ("autoload_psr4.php", "autoload_namespaces.php", "autoload_classmap.php", "autoload_files.php")


@dataclass(frozen=True, slots=True)
class Lead:
    """`place` leads to `target`, both relative to the checkout (empty: its root); `setting` is what brings `place` into workspaces."""

    place: str
    target: str
    setting: str


class Search:
    """One search over what `workspace.link`, `workspace.copy` and `.worktreeinclude` bring from a checkout."""

    def __init__(self, root: Path, link: Sequence[str]) -> None:
        self._root = root
        self._real = Path(os.path.realpath(root))
        self._shared = [Path(os.path.realpath(root / name)) for name in link]
        roots = "|".join(sorted({re.escape(str(root)), re.escape(str(self._real))}))
        self._mention = re.compile(rf"(?:{roots})(?:/[^'\"\n;,]*|(?=['\"\n;,\s]|$))")

    def linked(self, name: str) -> Iterator[Lead]:
        """What a linked path holds; it is seen through the link, so relative paths lead back as well."""
        top = self._root / name
        setting = f"workspace.link {name!r}"
        if top.is_file():
            yield from self._leads(setting, self._file(top, relative=True))
            return
        yield from self._leads(setting, self._links(top))
        for folder in _package_folders(top):
            if folder != top:
                yield from self._leads(setting, self._links(folder))
            for hidden in _HIDDEN:
                yield from self._leads(setting, self._links(folder / hidden))
            for entry in _entries(folder):
                yield from self._leads(setting, self._entry(entry, folder.name))
            if folder.name == "vendor":
                yield from self._leads(setting, self._composer(folder))

    def copied(self, paths: Iterable[str], setting: str) -> Iterator[Lead]:
        """What copied files hold; in a copy only absolute paths lead back."""
        for path in map(self._root.joinpath, paths):
            found = self._link(path, relative=False) if path.is_symlink() else self._file(path, relative=False)
            yield from self._leads(setting, found)

    def _leads(self, setting: str, found: Iterable[tuple[Path, Path]]) -> Iterator[Lead]:
        for place, target in found:
            real = Path(os.path.realpath(target))
            if self._is_source(real):
                shown = str(real.relative_to(self._real))
                yield Lead(str(place.relative_to(self._root)), "" if shown == "." else shown, setting)

    def _is_source(self, real: Path) -> bool:
        """Whether a path is the checkout's own: inside of it, but no installed package and not shared on purpose."""
        if not real.is_relative_to(self._real) or any(real.is_relative_to(shared) for shared in self._shared):
            return False
        return not {".git", *_PYTHON, "node_modules"} & set(real.relative_to(self._real).parts)

    def _links(self, folder: Path) -> Iterator[tuple[Path, Path]]:
        """Symbolic links in a folder, and in the scopes (`@acme`) or vendors (`acme`) below it."""
        for entry in _entries(folder):
            path = Path(entry.path)
            if entry.is_symlink():
                yield from self._link(path, relative=True)
            elif folder.name == "vendor" or entry.name.startswith("@"):
                for below in _entries(path):
                    if below.is_symlink():
                        yield from self._link(Path(below.path), relative=True)

    def _link(self, path: Path, *, relative: bool) -> Iterator[tuple[Path, Path]]:
        try:
            target = path.readlink()
        except OSError:
            return
        if relative or target.is_absolute():
            yield path, path.parent / target

    def _entry(self, entry: os.DirEntry[str], kind: str) -> Iterator[tuple[Path, Path]]:
        """One entry of a folder of Python packages."""
        path = Path(entry.path)
        if kind in _PYTHON and not entry.is_symlink():
            wanted = path / "direct_url.json" if entry.name.endswith((".dist-info", ".egg-info")) else path
            yield from self._file(wanted, relative=True)

    def _file(self, path: Path, *, relative: bool) -> Iterator[tuple[Path, Path]]:
        """Where one file of a known name leads."""
        if path.name == "direct_url.json":
            targets: Iterable[str] = _editable(_text(path))
        elif path.suffix in (".pth", ".egg-link"):
            targets = _lines(_text(path))
        elif path.suffix == ".py" and ("editable" in path.name or path.stem in ("sitecustomize", "usercustomize")):
            targets = self._mention.findall(_text(path))
        else:
            return
        for target in targets:
            if target.startswith(("import ", "import\t")):
                yield from ((path, Path(told)) for told in self._mention.findall(target))
                yield from self._imported(path, target)
            elif relative or target.startswith("/"):
                yield path, path.parent / target

    def _imported(self, path: Path, line: str) -> Iterator[tuple[Path, Path]]:
        """A line of a `.pth` file may import a module beside it that knows where the package is."""
        for name in re.findall(r"import\s+(\w+)", line):
            beside = path.with_name(f"{name}.py")
            yield from ((beside, Path(told)) for told in self._mention.findall(_text(beside)))

    def _composer(self, vendor: Path) -> Iterator[tuple[Path, Path]]:
        """Composer finds the project's classes from where its own files really are."""
        for name in _COMPOSER:
            path = vendor / "composer" / name
            if "$baseDir ." in _text(path):
                yield path, vendor.parent


def leads(root: Path, copy: Sequence[str], link: Sequence[str]) -> list[Lead]:
    """Everything in what workspaces get from the checkout that leads back to it, each place once."""
    search = Search(root, link)
    found = [lead for name in link for lead in search.linked(name)]
    include = root / INCLUDE_FILE
    for setting, sources in (
        ("workspace.copy", [f"--exclude={pattern}" for pattern in copy]),
        (INCLUDE_FILE, [f"--exclude-from={include}"] if include.is_file() else []),
    ):
        if sources:
            listed = git.ask("ls-files", "--others", "--ignored", "-z", *sources, "--", *_COPIED, cwd=root).items()
            found += search.copied(map(os.fsdecode, listed), setting)
    return list({lead.place: lead for lead in found}.values())


def require_none(found: Sequence[Lead]) -> None:
    """Raises SharedInstall, naming the first place and the remedy."""
    if not found:
        return
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    raise SharedInstall(
        f"{first.setting} brings {first.place}{more}, which leads back to {first.target or 'the root'} in the checkout:"
        " checks would test the checkout's files, not the step's",
        hint="take it out of that list and let `setup` install it in each workspace, or install the project without -e",
        places=[lead.place for lead in found],
    )


def _package_folders(top: Path) -> Iterator[Path]:
    """Folders of installed packages at or below a path; none is looked for inside another one."""
    waiting, seen = [(top, 0)], 0
    while waiting and seen < _FOLDERS:
        folder, depth = waiting.pop(0)
        seen += 1
        if folder.name in _PACKAGES:
            yield folder
        elif depth < _DEPTH:
            below = sorted(entry.path for entry in _entries(folder) if entry.is_dir(follow_symlinks=False))
            waiting += [(Path(path), depth + 1) for path in below]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listed:
            return list(listed)
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            regular = stat.S_ISREG(os.fstat(handle).st_mode)
            return file.read(_BYTES).decode("utf-8", "surrogateescape") if regular else ""
    except OSError:
        return ""


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def _editable(text: str) -> list[str]:
    """The folder of an editable install, by PEP 610."""
    try:
        told = json.loads(text or "{}")
        if not told["dir_info"]["editable"]:
            return []
        url = urlsplit(told["url"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [unquote(url.path)] if url.scheme == "file" else []
