"""Sliding windows that are published: the difference of two of them is never about few reports."""

from itertools import combinations, pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import build
from uldp.collector.ends import SliceReports, coarser
from uldp.collector.partial import Partial
from uldp.collector.published import has_few_at_ends, reports_of
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.pane import Accounting

PERIOD, LEAST = 10, 5
PLAIN = build_protocol(build.spec(domain={"size": 2}, mechanism={"name": "identity"})).decoder
RECORD = build_protocol(
    build.spec(
        domain={"record": {"a": {"size": 2}, "b": {"size": 2}}},
        mechanism={"name": "sample-one", "epsilon": 20.0, "of": {"a": {"name": "rr"}, "b": {"name": "rr"}}},
    )
).decoder


def part(*cells: int) -> Partial:
    n = sum(cells)
    return build.part(np.array(cells), Accounting(n, n))


@pytest.mark.parametrize("slices", [1, 2, 6, 7, 24, 96, 288, 9973, 10_000])
def test_coarser_slices_divide_one_another_and_the_window(slices: int) -> None:
    lengths = [*coarser(slices), slices] if slices > 1 else [*coarser(slices)]
    assert (lengths[0], lengths[-1]) == (1, slices)
    steps = [after // before for before, after in pairwise(lengths)]
    assert min(steps, default=2) > 1
    assert prod(steps) == slices
    assert all(after % before == 0 for before, after in pairwise(lengths))
    assert steps == sorted(steps, reverse=True)


def published(slices: dict[int, int], length: int, least: int = LEAST) -> dict[int, set[int]]:
    """The slices with reports of each window that is published."""
    parts = {slot * PERIOD: part(n, 0) for slot, n in slices.items() if n}
    reports, found = SliceReports(parts, PLAIN, length * PERIOD, PERIOD), {}
    for first in range(min(slices) - length, max(slices) + 1):
        held = {slot for slot in range(first, first + length) if slices.get(slot)}
        n = sum(slices[slot] for slot in held)
        if n >= least and not has_few_at_ends(reports.at_ends(first * PERIOD), (n,), least):
            found[first] = held
    return found


@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 7), min_size=1, max_size=30),
    st.sampled_from([1, 2, 3, 4, 6, 8, 12]),
)
@example(dict.fromkeys(range(24), 2), 6)
@example({n: 3 if n == 6 else 9 * (n != 12) for n in range(24)}, 6)
def test_no_difference_of_two_windows_is_about_few_reports(slices: dict[int, int], length: int) -> None:
    for one, other in combinations(published(slices, length).values(), 2):
        n = sum(slices[slot] for slot in one ^ other)
        assert n == 0 or n >= LEAST


@given(
    st.dictionaries(st.integers(0, 20), st.sampled_from([0, 1, 2, LEAST, 7]), min_size=1, max_size=20),
    st.sampled_from([2, 3, 4, 6]),
)
@example({0: 1, 1: 9, 6: 9, 11: 1}, 6)
def test_no_sum_of_three_windows_is_about_few_reports(slices: dict[int, int], length: int) -> None:
    for three in combinations(published(slices, length).values(), 3):
        for signs in product((1, -1), repeat=3):
            times = {
                slot: sum(sign * (slot in held) for sign, held in zip(signs, three, strict=True)) for slot in slices
            }
            n = sum(slices[slot] for slot, sign in times.items() if sign)
            assert n == 0 or n >= LEAST


@pytest.mark.parametrize(
    ("length", "enough", "alone", "signs"),
    [
        # Two windows of single slices, and two of slices of three; and windows of slices of one, two and four.
        (6, [2, 3, 7, 9, 12], 8, {0: 1, 2: -1, 7: 1, 9: -1}),
        (8, [1, 2, 7, 8, 12, 20, 21, 22, 26, 29], 11, {0: 1, 1: -1, 4: 1, 6: -1, 8: 1}),
    ],
    ids=["four", "five"],
)
@pytest.mark.parametrize("least", [LEAST, 1_000])
def test_a_sum_of_four_windows_or_five_may_be_about_a_single_report(
    length: int, enough: list[int], alone: int, signs: dict[int, int], least: int
) -> None:
    """docs/threats.md says so."""
    slices = {**dict.fromkeys(range(30), 0), **dict.fromkeys(enough, least), alone: 1}
    windows = published(slices, length, least)
    times = {slot: sum(sign * (slot in windows[first]) for first, sign in signs.items()) for slot in slices}
    assert sum(slices[slot] for slot, sign in times.items() if sign) == 1


def test_windows_of_one_length_of_slices_have_no_sums_of_few_reports() -> None:
    """Whatever the coefficients: the first slice of the earliest window is in no other."""
    rng = np.random.default_rng(1)
    slices = {slot: int(n) for slot, n in enumerate(rng.integers(LEAST, 9, 30))}
    windows = list(published(slices, 6).values())
    for _ in range(200):
        signs = rng.integers(-3, 4, len(windows))
        n = sum(
            n
            for slot, n in slices.items()
            if sum(sign * (slot in held) for sign, held in zip(signs, windows, strict=True))
        )
        assert n >= LEAST


def test_the_parts_of_a_window_add_up_to_its_ends() -> None:
    slices = {slot * PERIOD: part(slot, 1) for slot in range(-3, 12)}
    halves: list[dict[int, Partial]] = [{}, {}]
    for number, (start, each) in enumerate(slices.items()):
        halves[number % 2][start] = each
    whole, *parts = (SliceReports(each, PLAIN, 6 * PERIOD, PERIOD) for each in (slices, *halves))
    for start in range(0, 60, PERIOD):
        one, other = (each.at_ends(start) for each in parts)
        assert (one + other).tolist() == whole.at_ends(start).tolist()


def test_a_record_has_ends_of_each_variable() -> None:
    slices = {0: part(9, 0, 5, 0), 10: part(1, 0, 0, 0), 20: part(9, 0, 4, 0)}
    at_ends = SliceReports(slices, RECORD, 30, PERIOD).at_ends(0)
    assert at_ends.tolist() == [9, 5, 9, 4]
    total = sum(slices.values(), Partial())
    assert has_few_at_ends(at_ends, reports_of(RECORD, total), LEAST)
    assert not has_few_at_ends(at_ends, reports_of(RECORD, total), LEAST - 1)


def test_fixed_windows_have_no_ends() -> None:
    assert not has_few_at_ends(None, (3,), LEAST)
    none = SliceReports({}, PLAIN, 30, PERIOD)
    assert none.ended(0, part(3, 4)).ends == {}
