"""A key goes where it is meant to go, and into no text."""

from __future__ import annotations

import pytest

from harness.errors import ConfigInvalid, EnvironmentProblem, ModelFailed
from harness.models import access, choice, faults
from harness.models.access import Access
from harness.models.scripted import ScriptedModel
from harness.wiring import Project

_ENVIRONMENT = {"ORCHESTRIX_MODEL_API_KEY": "ours", "OPENAI_API_KEY": "theirs"}


def test_a_key_is_hidden_from_repr_and_text() -> None:
    """Also where a server repeats it in its complaint."""
    hidden = Access("openai", "m", key="sk-very-secret")
    assert "secret" not in repr(hidden)
    assert hidden.redacted("Incorrect API key provided: sk-very-secret.") == "Incorrect API key provided: [key]."
    with pytest.raises(ModelFailed) as caught, faults.told(hidden, 1):
        raise TimeoutError("sk-very-secret")
    assert "secret" not in str(caught.value.as_dict())


@pytest.mark.parametrize(
    ("environ", "provider", "base_url", "expected"),
    [
        (_ENVIRONMENT, "openai", None, "ours"),
        (_ENVIRONMENT, "openai", "https://models.example.org", "ours"),
        ({"OPENAI_API_KEY": "theirs"}, "openai", None, "theirs"),
        ({"OPENAI_API_KEY": "theirs"}, "openai", "https://models.example.org", None),
        ({"OPENAI_API_KEY": "theirs"}, "anthropic", None, None),
    ],
)
def test_a_provider_s_own_key_stays_with_the_provider(environ, provider, base_url, expected) -> None:
    """It is not sent to an address that somebody configured."""
    assert access.key_from(environ, provider, base_url) == expected


@pytest.mark.parametrize("name", ["gpt", "google:x", "openai:", ":x", ""])
def test_a_name_without_a_known_provider_is_refused(name) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        choice.split(name)
    assert caught.value.hint == "write openai:NAME, anthropic:NAME or scripted:FILE"


def test_the_project_makes_the_model_that_is_configured(tmp_path, monkeypatch) -> None:
    """By the environment alone; without it the hint names the variable."""
    (tmp_path / ".git").mkdir()
    with pytest.raises(EnvironmentProblem) as caught:
        Project.at(tmp_path).model  # noqa: B018 - making it is the claim
    assert caught.value.hint == "set ORCHESTRIX_MODEL to openai:NAME, anthropic:NAME or scripted:FILE"
    (tmp_path / "script.yaml").write_text("- say: hello\n")
    monkeypatch.setenv("ORCHESTRIX_MODEL", f"scripted:{tmp_path / 'script.yaml'}")
    made = Project.at(tmp_path).model
    assert isinstance(made, ScriptedModel)
    assert made.name == "scripted:script.yaml"
