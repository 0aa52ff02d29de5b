"""Servers of a repository are started for those who trust exactly that file, and for nobody else."""

from __future__ import annotations

import json
import subprocess

import pytest

from harness.config import mcp_file
from harness.config.mcp_file import McpServer
from harness.errors import ConfigInvalid

_FILE = {"mcpServers": {"docs": {"command": "docs-server", "args": ["--stdio"], "env": {"A": "b"}}}}


def _write(root, data) -> None:
    (root / ".mcp.json").write_text(json.dumps(data))


def test_servers_are_read(tmp_path) -> None:
    """No file is no servers."""
    assert mcp_file.read(tmp_path) is None
    _write(tmp_path, _FILE)
    found = mcp_file.read(tmp_path)
    assert found.servers == {"docs": McpServer(command="docs-server", args=["--stdio"], env={"A": "b"})}
    assert found.servers["docs"].argv == ["docs-server", "--stdio"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "names no servers"),
        ('{"mcpServers": []}', "names no servers"),
        ("{", "is no JSON"),
        ("[" * 9999, "is no JSON"),
    ],
)
def test_what_is_no_such_file_is_an_error_for_those_who_ask(tmp_path, text, words) -> None:
    """`orchestrix trust` says so; a run is not stopped by it."""
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(ConfigInvalid, match=words):
        mcp_file.read(tmp_path)


def test_servers_of_other_programs_are_skipped_with_the_reason(tmp_path) -> None:
    """As other tools write the file: types, addresses, folders, switches and keys that are unknown here."""
    local = {"type": "stdio", "command": "docs-server", "cwd": "tools/docs", "timeout": 60, "alwaysAllow": ["search"]}
    _write(
        tmp_path,
        {
            "$schema": "https://example.org/mcp.json",
            "inputs": [],
            "mcpServers": {
                "docs": local,
                "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"A": "b"}},
                "events": {"type": "sse", "url": "https://example.org/sse"},
                "bare": {"url": "https://example.org"},
                "off": {"command": "x", "disabled": True},
                "../odd": {"command": "x"},
                "empty": {"command": ""},
                "text": "x",
            },
        },
    )
    found = mcp_file.read(tmp_path)
    assert found.servers["docs"].argv[-2:] == ["tools/docs", "docs-server"]
    only = "only servers that a command starts can be used, not a url"
    assert (list(found.servers), found.skipped) == (
        ["docs"],
        {
            "web": only,
            "events": only,
            "bare": only,
            "off": "it is disabled",
            "../odd": found.skipped["../odd"],
            "empty": "command: String should have at least 1 character",
            "text": "it is no table",
        },
    )
    assert found.skipped["../odd"].startswith("its name: ")


def test_a_folder_is_entered_and_never_read_as_shell_text(tmp_path) -> None:
    """The server starts in its `cwd`, whatever characters that has."""
    folder = tmp_path / "a b; echo broken"
    folder.mkdir()
    server = McpServer(command="pwd", cwd=str(folder))
    done = subprocess.run(server.argv, capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}\n"


@pytest.mark.parametrize(
    ("enable", "local", "ci"),
    [
        (["shell"], {"shell"}, {"shell"}),
        ({"ci": ["shell", 3]}, set(), {"shell"}),
        ({"local": ["run"], "*": ["shell"]}, {"run", "shell"}, {"shell"}),
        ("shell", set(), set()),
    ],
)
def test_guarded_tools_are_enabled_by_environment(tmp_path, enable, local, ci) -> None:
    """A list is for everywhere; anything else that is not a list of names enables nothing."""
    _write(tmp_path, {**_FILE, "orchestrix": {"enable": enable}})
    found = mcp_file.read(tmp_path)
    assert (found.enabled({}), found.enabled({"CI": "true"})) == (local, ci)


def test_trust_is_pinned_to_content_and_place(tmp_path) -> None:
    """A changed byte or another checkout is not trusted."""
    here, there = tmp_path / "here", tmp_path / "there"
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    for root in (here, there):
        root.mkdir()
        _write(root, _FILE)
    found = mcp_file.read(here)
    assert not mcp_file.trusted(found, environ)
    mcp_file.trust(found, environ)
    assert mcp_file.trusted(mcp_file.read(here), environ)
    assert not mcp_file.trusted(mcp_file.read(there), environ)
    _write(here, {**_FILE, "mcpServers": {"docs": {"command": "evil-server"}}})
    assert not mcp_file.trusted(mcp_file.read(here), environ)
