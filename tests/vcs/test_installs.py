"""Installed packages that lead back to the checkout are found; those that do not are left alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.workbench import Workbench

from harness.vcs import installs

_SITE = ".venv/lib/python3.11/site-packages"


def put(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def direct_url(root: Path, *, editable: bool, target: Path) -> None:
    told = {"dir_info": {"editable": editable}, "url": target.as_uri()}
    put(root, f"{_SITE}/pkg-1.0.dist-info/direct_url.json", json.dumps(told))


def finder(root: Path, name: str) -> None:
    """As setuptools writes it for a layout that a path cannot describe."""
    put(root, f"{_SITE}/__editable__.pkg-1.0.pth", f"import {name}; {name}.install()\n")
    put(root, f"{_SITE}/{name}.py", f"MAPPING: dict[str, str] = {{'pkg': '{root}/src/pkg'}}\n")


def link(root: Path, path: str, target: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).symlink_to(target)


_LEADING: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "a path": (".venv", f"{_SITE}/pkg.pth", lambda r: put(r, f"{_SITE}/pkg.pth", f"# c\n\n{r}/src\n")),
    "a path without an end of line": (
        ".venv",
        f"{_SITE}/_editable_impl_pkg.pth",
        lambda r: put(r, f"{_SITE}/_editable_impl_pkg.pth", f"{r}/src"),
    ),
    "a relative path": (".venv", f"{_SITE}/conda.pth", lambda r: put(r, f"{_SITE}/conda.pth", "../../../../src\n")),
    "the root itself": (".venv", f"{_SITE}/pkg.pth", lambda r: put(r, f"{_SITE}/pkg.pth", f"{r}\n")),
    "a finder": (
        ".venv",
        f"{_SITE}/__editable___pkg_1_0_finder.py",
        lambda r: finder(r, "__editable___pkg_1_0_finder"),
    ),
    "a module with a name of its own": (".venv", f"{_SITE}/_loader.py", lambda r: finder(r, "_loader")),
    "a line of code": (
        ".venv",
        f"{_SITE}/code.pth",
        lambda r: put(r, f"{_SITE}/code.pth", f"import sys; sys.path.insert(0, '{r}/src')\n"),
    ),
    "an egg-link": (
        ".venv",
        f"{_SITE}/pkg.egg-link",
        lambda r: put(r, f"{_SITE}/pkg.egg-link", f"{r}/src\n../\n"),
    ),
    "direct_url.json": (
        ".venv",
        f"{_SITE}/pkg-1.0.dist-info/direct_url.json",
        lambda r: direct_url(r, editable=True, target=r),
    ),
    "a linked package": (".venv", f"{_SITE}/pkg", lambda r: link(r, f"{_SITE}/pkg", f"{r}/src/pkg")),
    "one environment of several": (
        ".tox",
        ".tox/py311/lib/python3.11/site-packages/pkg.pth",
        lambda r: put(r, ".tox/py311/lib/python3.11/site-packages/pkg.pth", f"{r}/src\n"),
    ),
    "what pnpm hoists": (
        "node_modules",
        "node_modules/.pnpm/node_modules/@acme/ui",
        lambda r: link(r, "node_modules/.pnpm/node_modules/@acme/ui", "../../../../src/pkg"),
    ),
    "a program of a workspace": (
        "node_modules",
        "node_modules/.bin/ui",
        lambda r: link(r, "node_modules/.bin/ui", "../../src/pkg/cli.js"),
    ),
    "an npm workspace": ("node_modules", "node_modules/ui", lambda r: link(r, "node_modules/ui", "../src/pkg")),
    "a scoped npm workspace": (
        "node_modules",
        "node_modules/@acme/ui",
        lambda r: link(r, "node_modules/@acme/ui", "../../src/pkg"),
    ),
    "a path repository of Composer": ("vendor", "vendor/acme/ui", lambda r: link(r, "vendor/acme/ui", "../../src/pkg")),
    "the autoloader of Composer": (
        "vendor",
        "vendor/composer/autoload_psr4.php",
        lambda r: put(r, "vendor/composer/autoload_psr4.php", "return array('A\\\\' => array($baseDir . '/src'));\n"),
    ),
    "a link of its own": ("deps", "deps/ui", lambda r: link(r, "deps/ui", "../src/pkg")),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    put(folder, "src/pkg/__init__.py")
    return folder


@pytest.mark.parametrize("case", _LEADING, ids=str)
def test_a_linked_path_that_leads_back_is_found(root: Path, case: str) -> None:
    """Whatever tool made it, the one place that leads back is named."""
    linked, place, make = _LEADING[case]
    make(root)
    assert [lead.place for lead in installs.leads(root, [], [linked])] == [place]


@pytest.mark.parametrize("case", _LEADING, ids=str)
def test_it_is_found_where_the_checkout_is_reached_through_a_link(root: Path, tmp_path: Path, case: str) -> None:
    """An install knows one name of the checkout, the user another."""
    linked, place, make = _LEADING[case]
    (tmp_path / "other").symlink_to(root)
    make(root)
    assert [lead.place for lead in installs.leads(tmp_path / "other", [], [linked])] == [place]


def test_what_does_not_lead_back_is_left_alone(root: Path) -> None:
    """Plain packages, other projects, packages that link to installed ones, and prefixes of the checkout's name."""
    sibling = root.parent / "repo-two" / "src"
    sibling.mkdir(parents=True)
    put(root, f"{_SITE}/other.pth", f"{sibling}\n../site-packages\nimport os; os.environ\n")
    put(root, f"{_SITE}/__editable___two_finder.py", f"MAPPING = {{'two': '{sibling}/two'}}\n")
    direct_url(root, editable=False, target=root)
    put(root, f"{_SITE}/plain/editable.py", f"HOME = '{root}/src'\n")
    put(root, ".venv/src/fork/setup.py")
    put(root, f"{_SITE}/fork.pth", f"{root}/.venv/src/fork\n")
    link(root, ".venv/lib64", "lib")
    put(root, "node_modules/.pnpm/a@1/node_modules/a/index.js")
    link(root, "node_modules/a", ".pnpm/a@1/node_modules/a")
    link(root, "packages/ui/node_modules/a", "../../../node_modules/.pnpm/a@1/node_modules/a")
    link(root, "node_modules/gone", "../nowhere/else/../../../..")
    put(root, "vendor/composer/autoload_psr4.php", "return array('M\\\\' => array($vendorDir . '/m/m/src'));\n")
    names = [".venv", "node_modules", "packages/ui/node_modules", "vendor", "not-there"]
    assert installs.leads(root, [], names) == []


def test_a_copy_leads_back_by_absolute_paths_alone(tmp_path: Path) -> None:
    """In a copy a relative path means the workspace; `.worktreeinclude` and `workspace.copy` are both looked at."""
    bench = Workbench(tmp_path / "bench")
    root = bench.files
    bench.commit(
        {".gitignore": ".venv/\nnode_modules/\nenv/\n", "src/pkg/__init__.py": "", ".worktreeinclude": "env/\n"}
    )
    put(root, f"{_SITE}/a.pth", f"{root}/src\n")
    put(root, f"{_SITE}/b.pth", "../../../../src\n")
    link(root, "node_modules/ui", "../src/pkg")
    link(root, "node_modules/@acme/ui", f"{root}/src/pkg")
    put(root, "env/lib/python3.11/site-packages/c.pth", f"{root}/src\n")
    found = installs.leads(root, [".venv/", "node_modules/"], [])
    assert {(lead.place, lead.setting) for lead in found} == {
        (f"{_SITE}/a.pth", "workspace.copy"),
        ("node_modules/@acme/ui", "workspace.copy"),
        ("env/lib/python3.11/site-packages/c.pth", ".worktreeinclude"),
    }


def test_a_large_folder_of_packages_is_not_read_through(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders that are listed do not grow with what is inside of packages."""

    def listed() -> int:
        scandir, folders = os.scandir, []
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", lambda folder: folders.append(folder) or scandir(folder))
            installs.leads(root, [], [".venv", "node_modules"])
        return len(folders)

    for number in range(20):
        put(root, f"{_SITE}/p{number}/__init__.py")
        put(root, f"node_modules/p{number}/index.js")
    before = listed()
    for number in range(20):
        for below in range(20):
            put(root, f"{_SITE}/p{number}/d{below}/x/__init__.py")
            put(root, f"node_modules/p{number}/d{below}/x/index.js")
    assert listed() == before
