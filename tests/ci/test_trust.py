"""Agents do not run where the job's credentials lie within their reach."""

from __future__ import annotations

import pytest

from harness.ci import trust
from harness.errors import EnvironmentProblem


def test_a_token_left_in_git_config_stops_the_job(bench):
    """`actions/checkout` leaves one there by default; the message names the key, never the value."""
    trust.require(bench.files, ("MY_AGENT_KEY",))
    bench.git("config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic c2VjcmV0")
    with pytest.raises(EnvironmentProblem) as caught:
        trust.require(bench.files, ())
    assert "http.https://github.com/.extraheader" in caught.value.message
    assert "c2VjcmV0" not in caught.value.message
    assert caught.value.hint == "check out with `persist-credentials: false`"


def test_a_token_in_an_included_file_is_found_too(bench, tmp_path):
    """Newer versions of the checkout action keep it beside the repository and include it."""
    (tmp_path / "credentials").write_text(
        '[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic c2VjcmV0\n'
    )
    bench.git("config", f"includeIf.gitdir:{bench.files / '.git'}.path", str(tmp_path / "credentials"))
    with pytest.raises(EnvironmentProblem):
        trust.require(bench.files, ())


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT"])
def test_a_setting_cannot_hand_the_token_or_the_runners_files_to_agents(bench, name):
    """The project's settings are repository content: a pull request could change them."""
    with pytest.raises(EnvironmentProblem, match=name):
        trust.require(bench.files, ("LANG", name))
