"""How a model is reached: which, where, with which key. The key is never part of a text that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from harness.model.late import dataclass

KEY_VARIABLE = "ORCHESTRIX_MODEL_API_KEY"
# The provider's own variable counts only for the provider's own address: a key never goes where it was not meant to.
_OWN_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_SHOWN_KEY = "[key]"
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Access:
    """`base_url` None is the provider's own address; `structured` is how a schema is asked for."""

    provider: str
    name: str
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    structured: str = "tool"

    @property
    def label(self) -> str:
        return f"{self.provider}:{self.name}"

    def redacted(self, text: str) -> str:
        """The text without the key, also where a server repeats it."""
        if self.key is None or len(self.key) < _SHORTEST_SECRET:
            return text
        return text.replace(self.key, _SHOWN_KEY)


def key_from(environ: Mapping[str, str], provider: str, base_url: str | None) -> str | None:
    """The key for this provider at this address; None where there is none."""
    own = _OWN_VARIABLES.get(provider, "") if base_url is None else ""
    return environ.get(KEY_VARIABLE) or environ.get(own) or None
