"""What the model library raises, as ModelFailed: the kind, a bounded message, and no key in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.errors import ModelFailed, ModelFault
from harness.model import duration
from harness.models.access import KEY_VARIABLE, Access

_MESSAGE_CHARS = 500
_HINTS = {
    ModelFault.AUTH: f"set {KEY_VARIABLE} to a key that may use this model",
    ModelFault.UNREACHABLE: "check the network and `model.base_url`",
    ModelFault.CONTEXT_FULL: "make the step smaller, or use a model that reads more",
    ModelFault.TIMEOUT: "raise `model.timeout`",
}


@contextlib.contextmanager
def told(access: Access, timeout_ms: int) -> Iterator[None]:
    """Raises ModelFailed in place of anything that the library or its transport raises on purpose."""
    import httpx2  # noqa: PLC0415 - comes with the model library
    from pydantic_ai import exceptions as theirs  # noqa: PLC0415 - heavy, and only needed where a model is called

    try:
        yield
    except TimeoutError as error:
        raise _failed(access, ModelFault.TIMEOUT, f"no answer within {duration.text(timeout_ms)}") from error
    except theirs.ModelAPIError as error:
        raise _failed(access, _kind(error), _words(error), error.retry_after) from error
    except theirs.ContentFilterError as error:
        raise _failed(access, ModelFault.REFUSED, error.message) from error
    except (theirs.AgentRunError, theirs.UserError) as error:
        raise _failed(access, ModelFault.BAD_RESPONSE, error.message) from error
    except httpx2.HTTPError as error:
        raise _failed(access, ModelFault.UNREACHABLE, str(error) or type(error).__name__) from error


def _kind(error: Exception) -> ModelFault:
    """The first row that the error is an instance of: special ones stand before general ones."""
    from pydantic_ai import exceptions as theirs  # noqa: PLC0415 - as above

    table = (
        (theirs.ModelRateLimitError, ModelFault.RATE_LIMIT),
        (theirs.ModelOverloadedError, ModelFault.RATE_LIMIT),
        (theirs.ModelQuotaExceededError, ModelFault.AUTH),
        (theirs.ModelAuthenticationError, ModelFault.AUTH),
        (theirs.ModelContextWindowExceededError, ModelFault.CONTEXT_FULL),
        (theirs.ModelRequestRejectedError, ModelFault.REFUSED),
        (theirs.ModelTimeoutError, ModelFault.TIMEOUT),
        (theirs.ModelRequestTimeout, ModelFault.TIMEOUT),
    )
    return next((kind for cls, kind in table if isinstance(error, cls)), ModelFault.UNREACHABLE)


def _words(error: Exception) -> str:
    """What the server said, or what the library makes of it."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    said = inner.get("message") if isinstance(inner, dict) else None
    return str(said or error)


def _failed(access: Access, kind: ModelFault, words: str, retry_after: float | None = None) -> ModelFailed:
    return ModelFailed(
        f"{access.label}: {access.redacted(words)[:_MESSAGE_CHARS]}",
        kind=kind,
        hint=_HINTS.get(kind, ""),
        retry_after_ms=None if retry_after is None else int(retry_after * 1000),
    )
