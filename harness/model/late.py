"""Dataclasses without the code that the standard library compiles for each of them.

That code is most of what a class costs at the start (0.7 ms for one with slots, and a run loads over a hundred). Here the
constructor is compiled when the first instance is made, and the other methods are shared. The fields are the standard
library's, so `fields`, `replace` and `asdict` do what they do; `slots` says only what it says to a reader.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):  # noqa: ANN001, ANN201, ARG001 - mypy reads the other one; no slots, see above
        """As `dataclasses.dataclass`, as far as it is used here."""
        if cls is None:
            return lambda found: _made(found, frozen=frozen, eq=eq)
        return _made(cls, frozen=frozen, eq=eq)


__all__ = ["dataclass"]
_MISSING = dataclasses.MISSING


def _made(cls: type, *, frozen: bool, eq: bool) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__  # or the standard library would work out a signature for it
    methods: dict[str, Any] = {"__init__": _first(cls, frozen=frozen), "__repr__": _repr}
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    if frozen:
        methods |= {"__setattr__": _refused, "__delattr__": _refused}
    if eq:
        values = _values(cls)
        methods["__eq__"] = lambda self, other: (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )
        methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
    own = cls.__dict__
    for name, method in methods.items():
        if name not in own or own[name] is None:  # Python itself sets __hash__ to None beside an __eq__
            setattr(cls, name, method)
    return cls


def _values(cls: type) -> Callable[[Any], tuple[Any, ...]]:
    """What an instance is compared by."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _first(cls: type, *, frozen: bool) -> Callable[..., None]:
    """The constructor until it is called: it makes the real one and puts it into its place."""

    def __init__(self: Any, *args: Any, **values: Any) -> None:  # noqa: N807 - it becomes the method
        made = _constructor(cls, frozen=frozen)
        setattr(cls, "__init__", made)  # noqa: B010 - mypy is right about assigning to it, and this is on purpose
        made(self, *args, **values)

    return __init__


def _constructor(cls: type, *, frozen: bool) -> Callable[..., None]:
    """Compiled from the names of the fields; defaults are handed in as values."""
    known: dict[str, Any] = {"_missing": _MISSING, "_set": object.__setattr__}
    takes, lines = ["self"], []
    for field in dataclasses.fields(cls):
        name, value = field.name, field.name
        if field.default_factory is not _MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}" if field.init else f"_make_{name}()"
        if field.init:
            known[f"_default_{name}"] = _MISSING if field.default_factory is not _MISSING else field.default
            optional = field.default_factory is not _MISSING or field.default is not _MISSING
            takes.append(f"{name}=_default_{name}" if optional else name)
        elif field.default_factory is _MISSING:
            continue  # the class has its default, or __post_init__ sets it
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n  ".join(lines) or "pass"
    text = f"def make({', '.join(known)}):\n def __init__({', '.join(takes)}):\n  {body}\n return __init__"
    space: dict[str, Any] = {}
    exec(text, {}, space)  # noqa: S102 - names of fields, as the standard library does it
    made: Callable[..., None] = space["make"](**known)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refused(_self: Any, name: str, *_value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
