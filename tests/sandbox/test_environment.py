"""An allowlist, not a blocklist."""

from __future__ import annotations

from harness.sandbox.environment import inherited


def test_only_listed_names_are_inherited() -> None:
    """Tokens, CI variables and git's own variables stay with the coordinator."""
    parent = {
        "PATH": "/bin",
        "HOME": "/home/u",
        "LC_ALL": "C",
        "GITHUB_TOKEN": "t",
        "CI": "true",
        "GIT_DIR": "/elsewhere",
        "LD_PRELOAD": "x.so",
        "PYTHONPATH": "/p",
        "API_KEY": "k",
        "SSL_CERT_FILE": "/c",
    }
    kept = {"PATH": "/bin", "HOME": "/home/u", "LC_ALL": "C", "SSL_CERT_FILE": "/c"}
    assert inherited(parent) == kept
    assert inherited(parent, ["API_KEY", "ABSENT"]) == kept | {"API_KEY": "k"}


def test_git_and_harness_variables_cannot_even_be_passed() -> None:
    """A leaked GIT_DIR would redirect every git call of a child."""
    assert inherited({"GIT_DIR": "x", "ORCHESTRIX_RUN_ID": "y"}, ["GIT_DIR", "ORCHESTRIX_RUN_ID"]) == {}
