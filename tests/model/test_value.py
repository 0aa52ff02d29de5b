"""Values are frozen, named, compared by their fields."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import pytest

from harness.model.value import Value


class Point(Value):
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


class Pixel(Point):
    colour: str


def test_fields_come_by_name_with_their_defaults():
    """Fields of the base come first; a factory gives each value its own default."""
    pixel = Pixel(x=1, colour="red")
    assert repr(pixel) == "Pixel(x=1, y=0, tags=[], colour='red')"
    assert list(Pixel.fields) == ["x", "y", "tags", "colour"]
    assert pixel.tags is not Pixel(x=1, colour="red").tags


def test_missing_and_unknown_fields_are_refused():
    """A constructor takes exactly the fields of its class."""
    with pytest.raises(TypeError, match="Pixel needs colour"):
        Pixel(x=1)
    with pytest.raises(TypeError, match="Point has no field z"):
        Point(x=1, z=2)


def test_a_value_never_changes():
    """Neither a field nor anything else can be set or deleted."""
    point = Point(x=1)
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be set"):
        point.x = 2
    with pytest.raises(AttributeError, match="Point is frozen: x cannot be deleted"):
        del point.x
    assert point.x == 1


def test_values_are_equal_by_class_and_fields():
    """A subclass with the same fields is another thing."""

    class Other(Point):
        pass

    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
