"""How large a text is for a model, and its start where that is too much."""

from __future__ import annotations

_BYTES_A_TOKEN = 3  # English prose has about four; names and code have fewer, and a budget must hold for them
_MARK = "\n[cut]"


def tokens(text: str) -> int:
    """How many tokens a text is, rather too many than too few."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def cut(text: str, budget: int) -> str:
    """The start of a text within so many tokens, with a mark where it ends early."""
    if tokens(text) <= budget:
        return text
    room = max(budget - tokens(_MARK), 0) * _BYTES_A_TOKEN
    return text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore") + _MARK
