"""Models of OpenAI's and Anthropic's kind, through the pydantic-ai library; the only files that know it are here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import ModelFailed, ModelFault
from harness.model import limits
from harness.models import faults, translation
from harness.models.access import Access
from harness.models.retrying import with_retries
from harness.ports import Answer, Message, ToolOffer, Turn

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.settings import ModelSettings

Shape = TypeVar("Shape")
_Make = Callable[[Access, Any], "LibraryModel"]
_NO_KEY = "none"  # servers of one's own often want no key, but the libraries want a text


class PydanticAiModel:
    """One model at one address; every call opens and closes its own connections, so that none outlives a run."""

    def __init__(self, access: Access) -> None:
        """Loads the library, which takes a second; raises ImportError where it is not installed."""
        self._access = access
        self._make = _MAKERS[access.provider]()

    @property
    def name(self) -> str:
        return self._access.label

    async def answer(
        self,
        system: str,
        prompt: str,
        shape: type[Shape],
        *,
        timeout_ms: int,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer[Shape]:
        """A value of this type; invalid output is sent back for repair at most MODEL_REPAIRS times."""
        if on_text is not None:
            turn = await self.converse(system, [Message("user", prompt)], (), timeout_ms=timeout_ms, on_text=on_text)
            told: Any = shape  # one text
            return Answer(told(answer=turn.message.text), turn.usage, self.name)
        from pydantic_ai import Agent, capture_run_messages  # noqa: PLC0415 - loaded by the constructor

        async def once(left_ms: int) -> Answer[Shape]:
            with capture_run_messages() as messages:
                try:
                    async with self._model(left_ms, timeout_ms) as model:
                        agent = Agent(
                            model,
                            output_type=_output(self._access.structured, shape),
                            instructions=system,
                            retries=limits.MODEL_REPAIRS,
                            model_settings=_answer_settings(self._access.structured, left_ms),
                        )
                        result = await agent.run(prompt)
                except ModelFailed as error:
                    error.usage = asdict(translation.usage(messages))
                    raise
            return Answer(result.output, translation.usage(messages), self.name)

        return await with_retries(once, timeout_ms)

    async def converse(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolOffer],
        *,
        timeout_ms: int,
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        """The next turn, streamed; a turn that says and calls nothing is a bad response."""

        async def once(left_ms: int) -> Turn:
            async with self._model(left_ms, timeout_ms) as model:
                response = await _streamed(
                    model, system, messages, tools, timeout_ms=left_ms, on_text=on_text or (lambda _: None)
                )
            turn = Turn(translation.from_library(response), translation.usage([response]), self.name)
            failed = self._unusable(turn.message, response)
            if failed is not None:
                failed.usage = asdict(turn.usage)
                raise failed
            return turn

        return await with_retries(once, timeout_ms)

    def _unusable(self, said: Message, response: ModelResponse) -> ModelFailed | None:
        if response.finish_reason == "content_filter":
            return ModelFailed(f"{self.name} declined to answer", kind=ModelFault.REFUSED)
        if not said.text and not said.calls:
            return ModelFailed(f"{self.name} said nothing", kind=ModelFault.BAD_RESPONSE)
        return None

    @contextlib.asynccontextmanager
    async def _model(self, left_ms: int, timeout_ms: int) -> AsyncIterator[LibraryModel]:
        """The library's model on a connection pool that ends with the call; raises ModelFailed for what fails in it.

        `left_ms` is what is left of `timeout_ms`, the limit that a person set and that a message names.
        """
        import httpx2  # noqa: PLC0415 - as above

        with faults.told(self._access, timeout_ms):
            async with (
                asyncio.timeout(left_ms / 1000),
                httpx2.AsyncClient(timeout=left_ms / 1000, follow_redirects=False) as client,
            ):
                yield self._make(self._access, client)


async def _streamed(
    model: LibraryModel,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[ToolOffer],
    *,
    timeout_ms: int,
    on_text: Callable[[str], None],
) -> ModelResponse:
    from pydantic_ai import direct  # noqa: PLC0415 - as above
    from pydantic_ai import messages as theirs  # noqa: PLC0415 - as above
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415 - as above

    async with direct.model_request_stream(
        model,
        translation.to_library(system, messages),
        model_settings=_settings(timeout_ms),
        model_request_parameters=ModelRequestParameters(function_tools=translation.definitions(tools)),
    ) as stream:
        async for event in stream:
            if isinstance(event, theirs.PartStartEvent) and isinstance(event.part, theirs.TextPart):
                on_text(event.part.content)
            elif isinstance(event, theirs.PartDeltaEvent) and isinstance(event.delta, theirs.TextPartDelta):
                on_text(event.delta.content_delta)
        return stream.get()


def _settings(timeout_ms: int) -> ModelSettings:
    """No retries by the provider's own client: ours know how much time is left."""
    from pydantic_ai.settings import ModelSettings  # noqa: PLC0415 - as above

    return ModelSettings(timeout=timeout_ms / 1000, max_retries=0)


def _answer_settings(structured: str, timeout_ms: int) -> ModelSettings:
    """Names the one tool that must be called: small servers hold a model to a schema only where a name is given."""
    from pydantic_ai.settings import ToolOrOutput  # noqa: PLC0415 - as above

    settings = _settings(timeout_ms)
    if structured == "tool":
        settings["tool_choice"] = ToolOrOutput(function_tools=[])
    return settings


def _output(structured: str, shape: type[Shape]) -> Any:
    from pydantic_ai import NativeOutput, PromptedOutput, ToolOutput  # noqa: PLC0415 - as above

    return {"tool": ToolOutput, "native": NativeOutput, "prompted": PromptedOutput}[structured](shape)


def _openai() -> _Make:
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - a second of imports, only where it is used
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

    def make(access: Access, client: Any) -> LibraryModel:
        provider = OpenAIProvider(base_url=access.base_url, api_key=access.key or _NO_KEY, http_client=client)
        return OpenAIChatModel(access.name, provider=provider)

    return make


def _anthropic() -> _Make:
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - as above

    def make(access: Access, client: Any) -> LibraryModel:
        provider = AnthropicProvider(base_url=access.base_url, api_key=access.key or _NO_KEY, http_client=client)
        return AnthropicModel(access.name, provider=provider)

    return make


_MAKERS: dict[str, Callable[[], _Make]] = {"openai": _openai, "anthropic": _anthropic}
PROVIDERS = tuple(_MAKERS)
