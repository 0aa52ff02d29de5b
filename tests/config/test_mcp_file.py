"""Servers of a repository are started for those who trust exactly that file, and for nobody else."""

from __future__ import annotations

import json

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
    ("data", "words"),
    [
        ({}, "mcpServers: Field required"),
        (
            {"mcpServers": {"docs": {"type": "http", "url": "https://example.org"}}},
            "mcpServers.docs.command: Field required",
        ),
        ({"mcpServers": {"../docs": {"command": "x"}}}, "mcpServers.../docs.[key]: String should match pattern"),
        ({"mcpServers": {"docs": {"command": ""}}}, "mcpServers.docs.command: String should have at least 1 character"),
    ],
)
def test_a_wrong_file_is_an_error(tmp_path, data, words) -> None:
    """Its place is named; what cannot be used here is not quietly left out."""
    _write(tmp_path, data)
    with pytest.raises(ConfigInvalid) as caught:
        mcp_file.read(tmp_path)
    assert caught.value.message.startswith(f"{tmp_path / '.mcp.json'}: {words}")


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
