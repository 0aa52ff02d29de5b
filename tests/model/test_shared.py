"""A shared mapping answers as a dictionary would, and none ever changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.model.shared import Shared

CHANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(), st.booleans()), max_size=120)


def _same(shared: Shared[int, int], expected: dict[int, int]) -> None:
    assert [(key in shared, shared.get(key)) for key in range(61)] == [
        (key in expected, expected.get(key)) for key in range(61)
    ]
    assert (len(shared), bool(shared), shared == expected) == (len(expected), bool(expected), True)
    assert list(shared) == list(shared.keys()) == list(expected)
    assert list(shared.items()) == list(expected.items())
    assert list(shared.values()) == list(expected.values())


@given(st.dictionaries(st.integers(0, 60), st.integers()), CHANGES)
def test_a_shared_mapping_is_a_dictionary(first, changes):
    """After any changes, with or without somebody who goes through all in between; older versions stay as they were."""
    made, expected = Shared(first), dict(first)
    versions = [(made, dict(expected))]
    for key, value, looked_at in changes:
        made, expected = made | {key: value}, expected | {key: value}
        versions.append((made, dict(expected)))
        if looked_at:
            assert len(made) == len(expected)
    for shared, then in versions:
        _same(shared, then)


def test_a_shared_mapping_takes_nothing_of_its_maker():
    """A dictionary that it was made from may change afterwards."""
    mine = {1: 1}
    made = Shared(mine)
    mine[1] = 2
    assert repr(made) == "Shared({1: 1})"
    assert made != mine


def test_a_change_does_not_copy_everything():
    """Hundreds of changes to a large mapping copy the whole of it a few times only."""
    copies = {id((made := Shared({number: number for number in range(1_000)}))._layers[0])}
    kept = [made]
    for number in range(320):
        kept.append(made := made | {number: -number})
        copies.add(id(made._layers[0]))
    assert len(copies) <= 11
    assert made == {number: number if number >= 320 else -number for number in range(1_000)}
