"""Records of rejected messages: joined, cut and read again, each message is in one of them, with its reason."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.test_records import through_avro
from uldp.schemas.places import RunIndex, numbers_in, runs_of, size
from uldp.schemas.reasons import MEANING, Reason
from uldp.schemas.rejected import ALIKE, Rejected, each_once, joined_rejected

ONE = Rejected("decode", "not_avro", "why", (b"x",), {"k": "v"}, (1,), "s.avro:0", 1, "0.1")
#: Some data often, some once.
BODIES = st.sampled_from([b"", b"a", b"often"]) | st.binary(min_size=1, max_size=3)


def of(bodies: list[bytes], numbers: list[int]) -> list[Rejected]:
    return [
        replace(ONE, bodies=(body,), publish_times=(10 * number,), source=f"s.avro:{number}")
        for body, number in zip(bodies, numbers, strict=True)
    ]


@st.composite
def singles(draw: st.DrawFn) -> list[Rejected]:
    """Records of one message each, in any order."""
    bodies = draw(st.lists(BODIES, min_size=1, max_size=3 * ALIKE))
    numbers = draw(st.permutations(range(2 * len(bodies))))
    return of(bodies, numbers[: len(bodies)])


def messages(records: list[Rejected]) -> Counter[tuple[int, bytes]]:
    """The number and the data of each message."""
    return Counter(
        (number, body)
        for record in records
        for number, (body, _) in zip(numbers_in(record.place[1]).tolist(), record.each(), strict=True)
    )


@given(singles(), st.data())
def test_which_records_there_are_follows_from_the_messages_alone(records: list[Rejected], data: st.DataObject) -> None:
    at_once = joined_rejected(records)
    cut = data.draw(st.integers(0, len(records)))
    twice = joined_rejected([*joined_rejected(records[:cut]), *joined_rejected(records[cut:])])
    assert sorted(twice, key=lambda each: each.place) == sorted(at_once, key=lambda each: each.place)
    assert messages(at_once) == messages(records)
    assert sum(record.reports for record in at_once) == len(records)
    assert len(at_once) <= 1 + len(records) // ALIKE


@given(singles())
def test_a_message_keeps_its_publish_time_or_its_record_that_of_the_first(records: list[Rejected]) -> None:
    for record in joined_rejected(records):
        numbers = numbers_in(record.place[1]).tolist()
        assert [10 * number for number in numbers][: len(record.publish_times)] == [*record.publish_times]


@given(singles())
def test_several_messages_round_trip(records: list[Rejected]) -> None:
    for record in joined_rejected(records):
        assert Rejected.from_avro(through_avro("rejected", record.to_avro())) == record


@given(singles(), st.data())
def test_a_part_holds_the_messages_of_its_numbers(records: list[Rejected], data: st.DataObject) -> None:
    for record in joined_rejected(records):
        numbers = numbers_in(record.place[1])
        chosen = numbers[sorted(data.draw(st.sets(st.integers(0, len(numbers) - 1), min_size=1)))]
        part = record.at(runs_of(chosen))
        assert (part.messages, part.reports) == (len(chosen), len(chosen))
        assert messages([part]) == Counter({each: 1 for each in messages([record]) if each[0] in chosen})


@given(singles())
def test_apart_each_message_has_a_record_or_shares_its_data(records: list[Rejected]) -> None:
    joined = joined_rejected(records)
    apart = [each for record in joined for each in record.apart()]
    assert all(len(each.bodies) == 1 for each in apart)
    assert messages(apart) == messages(joined)


@given(singles(), st.data())
def test_what_two_records_hold_counts_once(records: list[Rejected], data: st.DataObject) -> None:
    """As of a bundle that was tried again and cut otherwise."""
    cut = data.draw(st.integers(0, len(records)))
    files = [*joined_rejected(records), *joined_rejected(records[:cut]), *joined_rejected(records[cut:])]
    assert messages(list(each_once(files))) == messages(records)


def test_other_data_at_one_place_counts_too() -> None:
    first, other = joined_rejected(of([b"a", b"b"], [0, 1])), joined_rejected(of([b"a", b"c"], [0, 1]))
    assert messages(list(each_once([*first, *other]))) == Counter({(0, b"a"): 1, (1, b"b"): 1, (1, b"c"): 1})


def test_a_source_that_gives_several_messages_one_place_keeps_them_apart() -> None:
    records = of([b"a", b"b"], [3, 3])
    assert joined_rejected(records) == records


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": [2], "bodies": [b"a"] * 3, "publish_times": [1] * 3, "reports": 2},
        {"runs": [2], "bodies": [b"a"] * 2, "publish_times": [1], "reports": 2},
        {"runs": [2], "reports": 3},
        {"runs": [1 << 60], "reports": 0},
        {"runs": [1 << 60], "reports": 1 << 60},
        {"reports": -7},
        {"attempt": 0},
        {"publish_times": []},
        {"runs": [0]},
    ],
)
def test_records_that_contradict_themselves_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="messages"):
        Rejected.from_avro(ONE.to_avro() | wrong)


SETS = st.sets(st.integers(0, 60), min_size=1, max_size=12)


@given(st.lists(SETS, max_size=20), SETS)
def test_an_index_knows_which_sets_share_a_number(sets: list[set[int]], asked: set[int]) -> None:
    index = RunIndex()
    for numbers in sets:
        index.add(runs_of(np.array(sorted(numbers))))
    found = index.overlapping(runs_of(np.array(sorted(asked))))
    assert found == [at for at, numbers in enumerate(sets) if numbers & asked]


@given(st.sets(st.integers(0, 60), min_size=1))
def test_runs_are_of_their_numbers(numbers: set[int]) -> None:
    runs = runs_of(np.array(sorted(numbers)))
    assert numbers_in(runs).tolist() == sorted(numbers)
    assert size(runs) == len(numbers)


#: On disk and in dashboards: a name may be added, never changed.
NAMES = {
    "not_avro",
    "registry_framing",
    "unknown_schema",
    "truncated",
    "malformed",
    "too_large",
    "unknown_collection",
    "unknown_version",
    "retired_version",
    "wrong_payload",
    "wrong_length",
    "out_of_domain",
    "impossible_payload",
    "invalid_time",
    "too_early",
    "expired",
    "too_many_windows",
    "over_sender_limit",
}


def test_names_are_stable() -> None:
    assert {str(reason) for reason in Reason} == NAMES


@pytest.mark.parametrize("reason", Reason)
def test_a_meaning_is_one_line_of_its_own(reason: Reason) -> None:
    meaning = MEANING[reason]
    assert meaning.strip() == meaning
    assert len(meaning.splitlines()) == 1
    assert list(MEANING.values()).count(meaning) == 1
