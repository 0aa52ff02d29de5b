"""`orchestrix doctor` says which model is configured, and asks it only when told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from tests.support.workbench import Workbench


@pytest.fixture
def bench(tmp_path) -> Workbench:
    made = Workbench(tmp_path)
    made.commit({"a": "a"})
    return made


def _model(bench: Workbench, *flags: str) -> tuple[int, dict]:
    result = bench.call("doctor", "--json", *flags)
    (row,) = [row for row in result.data["checks"] if row["name"] == "model"]
    return result.code, row


def test_no_model_is_no_fault(bench) -> None:
    code, row = _model(bench)
    assert (code, row["ok"]) == (0, True)
    assert row["message"] == "none is configured; plans that name no model need none"


def test_a_model_is_named_and_asked_on_demand(bench, monkeypatch) -> None:
    """No request without the flag, one with it; the key is never shown."""
    with ModelServer() as server:
        url = server.url("text") + "/v1"
        monkeypatch.setenv("ORCHESTRIX_MODEL", "openai:small")
        monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", url)
        monkeypatch.setenv("ORCHESTRIX_MODEL_API_KEY", "sk-very-secret")
        code, row = _model(bench)
        assert (code, row["message"]) == (0, f"openai:small at {url}, with a key; not asked")
        assert server.requests() == []
        code, row = _model(bench, "--ask-model")
        assert (code, row["message"]) == (0, f"openai:small at {url}, with a key; it answers (120 tokens)")
        assert len(server.requests()) == 1


def test_a_model_that_refuses_the_key_is_a_finding(bench, monkeypatch) -> None:
    """With its kind and what to do."""
    with ModelServer() as server:
        monkeypatch.setenv("ORCHESTRIX_MODEL", "anthropic:small")
        monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", server.url("auth-failed"))
        code, row = _model(bench, "--ask-model")
    assert (code, row["ok"], row["hint"]) == (3, False, "set ORCHESTRIX_MODEL_API_KEY to a key that may use this model")
    assert "auth: anthropic:small: invalid x-api-key" in row["message"]


def test_doctor_names_a_repository_that_a_run_refuses(bench: Workbench, tmp_path: Path) -> None:
    """What `run` would say, before there is a run: here of a partial clone."""
    bench.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    bench.git("clone", "--quiet", "--filter=blob:none", bench.files.as_uri(), str(clone))
    doctor = bench.call("doctor", "-C", str(clone), "--json")
    assert doctor.code == 3
    assert "is a partial clone" in doctor.out
