"""Models over real HTTP, in both wire formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.models.access import Access
from harness.models.pydantic_ai import PydanticAiModel
from tests.support.model_server import ModelServer, Scenario

KEY = "sk-very-secret"
NAMES = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(params=["openai", "anthropic"])
def model(request, server) -> Callable[..., PydanticAiModel]:
    """Makes a model of one provider that plays a scenario, by name or as given."""

    def make(scenario: str | Scenario, structured: str = "tool") -> PydanticAiModel:
        if not isinstance(scenario, str):
            server.scenarios["given"] = scenario
            scenario = "given"
        url = server.url(scenario) + ("/v1" if request.param == "openai" else "")
        return PydanticAiModel(Access(request.param, NAMES[request.param], url, KEY, structured))

    return make
