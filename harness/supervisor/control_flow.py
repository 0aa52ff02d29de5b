"""Exceptions that are control flow of the surrounding runtime, not failures: nobody here may swallow them.

A driver adds its own (LangGraph signals an interrupt by raising); the rules then need not know the runtime.
"""

from __future__ import annotations

_SIGNALS: set[type[BaseException]] = set()


def let_through(signal: type[BaseException]) -> None:
    """Declare an exception type as control flow."""
    _SIGNALS.add(signal)


def is_signal(error: BaseException) -> bool:
    return isinstance(error, tuple(_SIGNALS))
