"""A mapping that never changes, and that shares what it holds with the one it was made from.

A run has a step for each of a thousand tasks, and each fact changes one of them: a copy of all for each fact would make
a run's cost grow with the square of its length.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TypeVar

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")
_NEWER = 32  # what is copied for each change, at most


class Shared(Mapping[_Key, _Item]):
    """Many older items, shared, under a few newer ones; keys stand in the order in which they first came.

    Both are put together when there are too many newer ones, or when somebody goes through all. The two dictionaries
    are replaced together and never changed, so that threads may read.
    """

    __slots__ = ("_layers",)

    def __init__(self, older: Mapping[_Key, _Item] | None = None) -> None:
        self._layers: tuple[dict[_Key, _Item], dict[_Key, _Item]] = (dict(older or {}), {})

    def __or__(self, changes: Mapping[_Key, _Item]) -> Shared[_Key, _Item]:
        older, newer = self._layers
        both = {**newer, **changes}
        made: Shared[_Key, _Item] = Shared.__new__(Shared)
        made._layers = (older, both) if len(both) <= _NEWER else ({**older, **both}, {})
        return made

    def __getitem__(self, key: _Key) -> _Item:
        older, newer = self._layers
        return newer[key] if key in newer else older[key]

    def __contains__(self, key: object) -> bool:
        older, newer = self._layers
        return key in newer or key in older

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def keys(self) -> KeysView[_Key]:
        return self._all().keys()

    def values(self) -> ValuesView[_Item]:
        return self._all().values()

    def items(self) -> ItemsView[_Key, _Item]:
        return self._all().items()

    def __repr__(self) -> str:
        return f"Shared({self._all()!r})"

    def _all(self) -> dict[_Key, _Item]:
        older, newer = self._layers
        if newer:
            older = {**older, **newer}
            self._layers = (older, {})
        return older
