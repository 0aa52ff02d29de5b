"""Frozen values with named fields, without the code that `dataclass` generates.

That code costs a start about 1 ms for each class, and there are dozens of facts; here a class costs microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, dataclass_transform

_REQUIRED: Any = object()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value:
    """Fields are the annotations of the class and its bases; the constructor takes them by name only.

    A default is a plain value or `field(default_factory=...)`. Equality is by class and fields.
    """

    fields: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        own = {
            name: cls.__dict__.get(name, _REQUIRED)
            for name, annotation in cls.__annotations__.items()
            if not annotation.startswith("ClassVar")
        }
        cls.fields = MappingProxyType({**cls.fields, **own})

    def __init__(self, **values: Any) -> None:
        """Raises TypeError for a missing or an unknown field."""
        for name, default in self.fields.items():
            value = values.pop(name, default)
            if value is _REQUIRED:
                raise TypeError(f"{type(self).__name__} needs {name}")
            self.__dict__[name] = _fresh(value) if isinstance(value, Field) else value
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(values)}")

    def __setattr__(self, name: str, _value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]  # fields hold lists and mappings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def _fresh(default: Any) -> Any:
    return default.default_factory()
