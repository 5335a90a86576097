"""Strata: the reports of a record, against the mechanisms of its parts."""

from collections.abc import Sequence
from copy import copy

import numpy as np
import numpy.typing as npt
import pytest

from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding
from uldp.mechanisms.protocol.cells import SparseCells, as_dense
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Guarantee, Mechanism, PayloadForm, Privacy, PureMechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Floats, Payloads, Values


def response(size: int, epsilon: float | None = 1.0, sensitive: int | None = None) -> RandomizedResponse:
    return RandomizedResponse(np.arange(size) < (size if sensitive is None else sensitive), epsilon)


def bits(size: int) -> UnaryEncoding:
    return UnaryEncoding(np.ones(size, dtype=np.bool_), 1.0, OUE_THETA)


#: Parts and shares: all parts send symbols, one sends a symbol among bytes, and all send bytes.
CASES: dict[str, tuple[list[PureMechanism], list[float]]] = {
    "symbols": ([response(5), response(3, sensitive=1), response(4, 2.0)], [0.5, 0.2, 0.3]),
    "mixed": ([bits(9), response(5), LocalHashing(6, 1.0)], [0.3, 0.5, 0.2]),
    "bytes": ([LocalHashing(6, 1.0), bits(100), LocalHashing(3, 2.0, 5)], [0.6, 0.1, 0.3]),
    "one": ([LocalHashing(6, 1.0)], [1.0]),
}


def pum(size: int) -> Pum:
    return Pum(np.ones(size, dtype=np.bool_), (), np.empty((0, size)), np.empty(0))


def held(values: Values | Floats) -> Held:
    return Held(values, np.full(len(values), -1))


class Fixed:
    """Randomness whose integers are given; all else is drawn by a generator."""

    def __init__(self, integers: Sequence[int]) -> None:
        self.given = np.array(integers)

    def random(self, size: int | tuple[int, ...]) -> Floats:
        return np.random.default_rng(0).random(size)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        assert (self.given >= low).all()
        assert (self.given < high).all()
        assert len(self.given) == size
        return self.given


def of_record(encodings: Sequence[Encoding], strata: Strata) -> StrataEncoding:
    """Each part reads a column of its own, as of a record."""
    return StrataEncoding([StratumSource(each, (number,)) for number, each in enumerate(encodings)], strata)


@pytest.mark.parametrize(
    ("parts", "guarantee"),
    [
        ([response(5), response(3)], Guarantee(Privacy.LDP, 1.0)),
        ([response(5, 0.5), response(3, 2.0)], Guarantee(Privacy.LDP, 2.0)),
        ([response(5), response(3, sensitive=1)], Guarantee(Privacy.ULDP, 1.0)),
        ([response(5), response(3, None), response(3, sensitive=1)], Guarantee(Privacy.NONE, None)),
    ],
)
def test_the_guarantee_is_that_of_the_weakest_part(parts: list[Mechanism], guarantee: Guarantee) -> None:
    assert Strata(parts, [1 / len(parts)] * len(parts)).guarantee == guarantee


@pytest.mark.parametrize(("rest", "symbols", "width"), [(1, 1 << 31, None), (2, None, 6)])
def test_symbols_that_do_not_fit_a_symbol_are_bytes(rest: int, symbols: int | None, width: int | None) -> None:
    most, others = response(2), response(rest)
    most.form = PayloadForm(symbols=(1 << 31) - 1)
    form = Strata([most, others], [0.5, 0.5]).form
    assert (form.symbols, form.width) == (symbols, width)


@pytest.mark.parametrize(
    "shares", [[0.5, 0.5], [0.5, 0.5, 0.0], [0.5, 0.5, 1e-10], [0.6, 0.6, -0.2], [0.5, 0.3, 0.1], [np.nan, 0.5, 0.5]]
)
def test_shares_that_are_no_distribution_over_the_parts_are_refused(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="3 parts need shares of at least 1e-09 that sum to 1, got"):
        Strata([response(3)] * 3, shares)


@pytest.mark.parametrize("count", [0, 65_537])
def test_the_number_of_parts_fits_two_bytes(count: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 65536 parts, got {count}"):
        Strata([response(2)] * count, [1 / max(count, 1)] * count)


def test_strata_of_more_symbols_than_int64_adds_up_are_refused() -> None:
    strings = response(2)
    strings.size = 1 << 48
    assert Strata([strings] * (1 << 14), [1 / (1 << 14)] * (1 << 14)).size == 1 << 62
    for parts in ([strings] * (1 << 16), [*[strings] * (1 << 14), response(1)]):
        with pytest.raises(ValueError, match="symbols or cells together, and 2\\^62 is the most"):
            Strata(parts, [1 / len(parts)] * len(parts))


@pytest.mark.parametrize("one", [bits(9), LocalHashing(6, 1.0), Geometric(1.0, 20), response(4)])
def test_parts_of_one_mechanism_are_read_together_as_each_alone(one: Mechanism) -> None:
    # Of two mechanisms, so that payloads are bytes and of parts that alternate; and of symbols alone.
    for parts in ([one, response(5), one, one], [one, one, one], [one, bits(70), one]):
        strata, alone = (Strata(each, [1 / len(each)] * len(each)) for each in (parts, list(map(copy, parts))))
        rng = np.random.default_rng(9)
        payloads = strata.perturb(rng.integers(0, strata.size, 500), rng)
        hostile: Payloads = payloads.copy()
        hostile[:] = rng.integers(0, 256, payloads.shape)
        for sent in (payloads, hostile):
            assert [each.tolist() for each in strata.inspect(sent)] == [each.tolist() for each in alone.inspect(sent)]
        groups = rng.integers(0, 3, 500)
        for cells, other in zip(strata.tally([payloads], groups, 3), alone.tally([payloads], groups, 3), strict=True):
            assert as_dense(cells).tolist() == as_dense(other).tolist()


@pytest.mark.parametrize(
    ("payload", "possible"),
    [
        ([0, 0, 0b10000000, 0b10000000, 0, 0, 0, 0], True),
        ([0, 0, 0b10000000, 0b11000000, 0, 0, 0, 0], False),  # a bit behind the nine
        ([0, 0, 0b10000000, 0b10000000, 1, 0, 0, 0], False),  # padding behind the part
        ([0, 0, 0b10000000, 0b10000000, 0, 0, 0, 1], False),
        ([1, 0, 4, 0, 0, 0, 0, 0], True),
        ([1, 0, 5, 0, 0, 0, 0, 0], False),  # a symbol outside of the part
        ([1, 0, 4, 1, 0, 0, 0, 0], False),
        ([1, 0, 4, 0, 0, 128, 0, 0], False),
        ([1, 0, 4, 0, 0, 0, 1, 0], False),
        ([2, 0, 255, 255, 255, 255, 3, 0], True),
        ([2, 0, 255, 255, 255, 255, 4, 0], False),  # a bucket beyond the last
        ([2, 0, 255, 255, 255, 255, 3, 1], False),
        ([3, 0, 0, 0, 0, 0, 0, 0], False),  # no such part
        ([1, 1, 4, 0, 0, 0, 0, 0], False),
        ([255, 255, 0, 0, 0, 0, 0, 0], False),
    ],
)
def test_possible_bytes_name_a_part_and_hold_its_payload_and_zeros(payload: list[int], possible: bool) -> None:
    strata = Strata(*CASES["mixed"])
    assert strata.possible(np.array([payload], dtype=np.uint8)).tolist() == [possible]


def test_payloads_that_a_part_calls_improbable_are_improbable() -> None:
    strata = Strata([response(3), bits(800)], [0.5, 0.5])
    totals = [np.packbits(np.arange(800) < total) for total in range(801)]
    possible, improbable = strata.inspect(np.array([[1, 0, *total] for total in totals], dtype=np.uint8))
    of_part = bits(800).inspect(np.array(totals))
    assert (possible.tolist(), improbable.tolist()) == (of_part[0].tolist(), of_part[1].tolist())
    assert (possible & improbable).any()
    assert (possible & ~improbable).any()


def test_a_large_part_with_few_reports_leaves_the_cells_sparse() -> None:
    strata = Strata([LocalHashing(3, 1.0), response(100_000), response(2)], [0.2, 0.4, 0.4])
    payloads = strata.perturb(np.array([0, 5, 70_000, 100_003, 100_004]), np.random.default_rng(0))
    groups = np.array([0, 1, 1, 1, 0])
    cells = strata.tally([payloads], groups, 2)
    for group, of in enumerate(cells):
        assert isinstance(of, SparseCells)
        assert (np.diff(of.indices) > 0).all()
        assert as_dense(of).tolist() == strata.statistic(payloads[groups == group]).tolist()


def test_draws_follow_the_shares_to_the_last_unit() -> None:
    ends = [1 << 52, (1 << 52) + (1 << 51)]
    strata = Strata([response(2)] * 3, [0.5, 0.25, 0.25])
    given = [0, ends[0] - 1, ends[0], ends[1] - 1, ends[1], (1 << 53) - 1]
    assert strata.draw(6, Fixed(given)).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("drawn", [0, 1 << 52])
@pytest.mark.parametrize("wrong", [0, 1])
def test_a_value_outside_of_any_domain_is_refused_whichever_variable_is_drawn(drawn: int, wrong: int) -> None:
    encoding = of_record([pum(5), pum(5)], Strata([response(5)] * 2, [0.5, 0.5]))
    columns = [held(np.array([3])), held(np.array([3]))]
    columns[wrong] = held(np.array([1234]))
    with pytest.raises(ValueError, match="outside of the domain 0 to 4") as caught:
        encoding.encode(columns, Fixed([drawn]))
    assert "1234" not in str(caught.value)


def test_a_column_or_an_encoding_must_not_be_missing() -> None:
    strata = Strata([response(5)] * 2, [0.5, 0.5])
    with pytest.raises(ValueError, match="2 parts, but 1 encodings"):
        of_record([pum(5)], strata)
    with pytest.raises(ValueError, match="1 columns, but the parts read 2"):
        of_record([pum(5), pum(5)], strata).encode([held(np.array([1]))], np.random.default_rng(0))
