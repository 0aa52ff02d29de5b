"""A late dataclass is a dataclass: what differs is when its code is made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any, ClassVar

import pytest

from harness.model import late


def both(cls: type, **settings: Any) -> tuple[Any, Any]:
    """The same declaration, made by the standard library and by `late`."""
    body = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    return tuple(make(type(cls.__name__, cls.__bases__, dict(body))) for make in (
        dataclasses.dataclass(**settings), late.dataclass(**settings)
    ))  # fmt: skip


class Plain:
    kind: ClassVar[str] = "k"
    one: int
    two: str = "two"
    many: list[int] = field(default_factory=list)
    hidden: int = field(default=0, repr=False, compare=False)


class After:
    one: int
    two: int = field(init=False)
    three: list[int] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.two = self.one + 1


class Nothing:
    pass


class Alone:
    one: int


@late.dataclass(frozen=True, slots=True)
class Kept:
    one: int
    two: tuple[int, ...] = ()


@late.dataclass(frozen=True)
class Wider(Kept):
    three: int = 3


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("cls", [Plain, Nothing, Alone])
def test_it_is_made_compared_and_shown_as_the_standard_librarys(cls: type, frozen: bool) -> None:
    """Constructor, defaults, equality, hash and repr."""
    standard, ours = both(cls, frozen=frozen)
    arguments = () if cls is Nothing else (1,)
    assert repr(ours(*arguments)) == repr(standard(*arguments)).replace(standard.__qualname__, ours.__qualname__)
    assert ours(*arguments) == ours(*arguments)
    assert ours(*arguments) != standard(*arguments)
    assert inspect.signature(ours).parameters.keys() == inspect.signature(standard).parameters.keys()
    assert ours.__match_args__ == standard.__match_args__
    if frozen and cls is not Plain:  # a list has no hash
        assert hash(ours(*arguments)) == hash(standard(*arguments))
    assert (ours.__hash__ is None) == (standard.__hash__ is None)


def test_defaults_are_not_shared_and_what_is_not_compared_is_not() -> None:
    """Each instance has a list of its own."""
    _, ours = both(Plain)
    first, second = ours(1), ours(1, hidden=5)
    first.many.append(1)
    assert (second.many, second.hidden, first.kind) == ([], 5, "k")
    assert ours(1, many=[1]) == first
    assert ours(1) == second
    assert ours(2) != second


@pytest.mark.parametrize("arguments", [{}, {"one": 1, "none": 2}])
def test_a_wrong_call_is_refused_from_the_first_on(arguments: dict[str, int]) -> None:
    """A field that is missing, and one that does not exist."""
    _, ours = both(Plain)
    for _time in range(2):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            ours(**arguments)


def test_what_comes_after_the_constructor_is_called() -> None:
    """`__post_init__` sees the fields, and sets those that the constructor does not take."""
    standard, ours = both(After)
    assert dataclasses.asdict(ours(1)) == dataclasses.asdict(standard(1)) == {"one": 1, "two": 2, "three": []}


def test_a_frozen_one_stays_as_it_is() -> None:
    """Neither set nor deleted, known or unknown."""
    kept = Kept(1)
    for name in ("one", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(kept, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(kept, name)
    assert kept == Kept(1)


def test_the_functions_of_the_standard_library_know_it() -> None:
    """`fields`, `replace`, `asdict`, copies and pickles."""
    assert [item.name for item in dataclasses.fields(Wider)] == ["one", "two", "three"]
    wide = dataclasses.replace(Wider(1), two=(2,))
    assert wide == Wider(1, (2,), 3) == copy.deepcopy(wide) == pickle.loads(pickle.dumps(wide))
    assert dataclasses.asdict(wide) == {"one": 1, "two": (2,), "three": 3}
    assert wide != Kept(1, (2,))


def test_a_method_that_the_class_has_stays() -> None:
    """As with the standard library."""

    @late.dataclass(frozen=True)
    class Own:
        one: int

        def __repr__(self) -> str:
            return "own"

    assert repr(Own(1)) == "own"
