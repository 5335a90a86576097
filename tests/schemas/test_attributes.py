"""Which attributes of a message are kept, and how much of them."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.records import ATTEMPT, KNOWN_ATTRIBUTES, MAX_VALUE_BYTES, NO_ATTRIBUTES, SENDER, known_attributes


class Hostile(Mapping[str, str]):
    """So many attributes that nobody may go through them."""

    def __getitem__(self, name: str) -> str:
        return "x" * 300_000

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


@pytest.mark.parametrize("attributes", [{}, {"trace": "0af7"}, {SENDER.upper(): "x"}])
def test_other_attributes_are_dropped(attributes: dict[str, str]) -> None:
    assert known_attributes(attributes) is NO_ATTRIBUTES


@given(st.dictionaries(st.text() | st.sampled_from(KNOWN_ATTRIBUTES), st.text(max_size=MAX_VALUE_BYTES // 4)))
def test_short_values_are_kept_as_they_are(attributes: dict[str, str]) -> None:
    assert known_attributes(attributes) == {name: attributes[name] for name in KNOWN_ATTRIBUTES if name in attributes}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=MAX_VALUE_BYTES // 4))
def test_long_values_are_cut_behind_a_character(value: str) -> None:
    kept = known_attributes({SENDER: value})[SENDER]
    size = len(kept.encode())
    assert value.startswith(kept)
    assert kept == value if len(value.encode()) <= MAX_VALUE_BYTES else MAX_VALUE_BYTES - 4 < size <= MAX_VALUE_BYTES


def test_the_work_does_not_grow_with_the_attributes() -> None:
    assert known_attributes(Hostile()) == dict.fromkeys((ATTEMPT, SENDER), "x" * MAX_VALUE_BYTES)
