"""What a text that leaves this machine must not tell: secrets, and where things lie here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness.model.late import dataclass

_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE)
_SHORTEST = 8  # shorter values are words that stand anywhere
# Keys that can be told by their form, whoever's they are.
_SECRET_FORM = re.compile(
    r"\b(?:sk|rk|pk)-[A-Za-z0-9_-]{20,}"
    r"|\bgh[oprsu]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\bAKIA[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Masking:
    """`secrets` and `places` map what must not be told to what stands in its stead."""

    secrets: Mapping[str, str]
    places: Mapping[str, str]

    @classmethod
    def of(cls, environ: Mapping[str, str], passed: Iterable[str], places: Mapping[str, str]) -> Masking:
        """Secret are the variables that are named like one, and those that the settings pass on to agents."""
        named = {name for name in environ if _SECRET_NAME.search(name)} | set(passed)
        secrets = {environ[name]: f"<{name}>" for name in sorted(named) if len(environ.get(name, "")) >= _SHORTEST}
        return cls(secrets, {place: name for place, name in places.items() if place.strip("/")})

    def text(self, told: str) -> str:
        """The text with every secret and every place replaced, longer ones first."""
        known = {**self.places, **self.secrets}
        for hidden in sorted(known, key=len, reverse=True):
            told = told.replace(hidden, known[hidden])
        return _SECRET_FORM.sub("<secret>", told)

    def value(self, told: object) -> object:
        """The same for all texts of a JSON value."""
        if isinstance(told, str):
            return self.text(told)
        if isinstance(told, Mapping):
            return {self.text(str(name)): self.value(item) for name, item in told.items()}
        return [self.value(item) for item in told] if isinstance(told, list | tuple) else told

    def betrayed(self, content: bytes) -> str | None:
        """The name of a secret that stands in this content; None when there is none."""
        return next((name for value, name in self.secrets.items() if value.encode() in content), None)
