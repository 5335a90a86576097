"""More candidates than the cells tell apart, against dense least squares on those found and each other one."""

import numpy as np
import pytest

from benchmarks.candidates import decoder_of, draw_cells
from tests import build
from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohorts import hash_positions, string_symbol
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import TableName

K, N = 1200, 40_000
NAMES = [f"s{i}" for i in range(K)]
#: Strings that are held and no candidates.
OTHERS = [f"other {i}" for i in range(300)]
each = pytest.mark.parametrize("mechanism", ["cohort-olh", "bloom"])


def decoder(mechanism: str) -> CandidateDecoder:
    cohorts = {"cohort-olh": 600, "bloom": 32}[mechanism]
    keys = {"name": mechanism, "epsilon": 3.0, "cohorts": cohorts}
    keys |= {"buckets": 8} if mechanism == "cohort-olh" else {}
    spec = build.spec(domain={"strings": {"longest": 16}}, mechanism=keys, candidates=NAMES)
    built = build_protocol(spec).decoder
    assert isinstance(built, CandidateDecoder)
    return built


def truth() -> Floats:
    """The shares of the candidates, of which 500 are held, and of the others: 70 and 30 % in all."""
    shares = np.zeros(K)
    shares[:500] = np.arange(1, 501) ** -1.1
    return np.concatenate([0.7 * shares / shares.sum(), np.full(len(OTHERS), 0.3 / len(OTHERS))])


def cells_of(mechanism: CandidateDecoder, seed: int = 1) -> Counts:
    symbols = np.array([string_symbol(name, 16) for name in NAMES + OTHERS])
    return draw_cells(mechanism.channel, symbols, truth(), N, np.random.default_rng(seed))


def design(of: CandidateDecoder, names: list[str]) -> Floats:
    """D of some strings, shape (M L, k), written out."""
    channel, symbols = of.channel, np.array([string_symbol(name, 16) for name in names])
    found = hash_positions(np.arange(channel.cohorts)[:, np.newaxis], symbols, channel.hashes, channel.positions)
    bits = np.zeros((channel.cohorts, channel.positions, len(names)))
    for column in range(len(names)):
        for function in range(channel.hashes):
            bits[np.arange(channel.cohorts), found[:, column, function], column] = 1
    dense: Floats = bits.reshape(-1, len(names)) - channel.covered
    return dense


@each
def test_each_estimate_is_that_of_least_squares_on_those_found_and_itself(mechanism: str) -> None:
    of = decoder(mechanism)
    channel, cells = of.channel, cells_of(of)
    linear = of.estimate(cells, N)
    together = linear.together.tolist()
    assert 5 <= len(together) < 300
    of_cohorts = cells.reshape(channel.cohorts, -1)
    sizes = of_cohorts[:, :1] if mechanism == "bloom" else of_cohorts.sum(axis=1, keepdims=True)
    supports = of_cohorts[:, -channel.positions :]
    corrected = (supports - channel.q * sizes) / (channel.p - channel.q) - channel.covered * sizes
    response = corrected.ravel() * channel.cohorts / N
    of_found = design(of, [NAMES[i] for i in together])
    alone, *_ = np.linalg.lstsq(of_found, response, rcond=None)
    assert linear.values[together] == pytest.approx(alone, abs=1e-8)
    ends = [i for i in range(0, K, 40) if i not in together]
    columns = design(of, [NAMES[i] for i in ends])
    for i, column in zip(ends, columns.T, strict=True):
        fitted, *_ = np.linalg.lstsq(np.column_stack([of_found, column]), response, rcond=None)
        # D_x . P D_x is taken as its mean, which it meets within a few hundredths here.
        assert linear.values[i] == pytest.approx(fitted[-1], rel=0.1, abs=1e-6)


@each
def test_intervals_cover_and_found_ones_are_held(mechanism: str) -> None:
    of, share_of = decoder(mechanism), truth()[:K]
    covered, z = [], []
    for seed in range(4):
        tables = {table.name: table for table in of.tables(cells_of(of, seed), N, "empirical")}
        share = tables[TableName.SHARE]
        low, high = ends_of(share)
        # An interval that lies below 0 is cut to 0, and covers the share 0.
        covered.append(((low <= share_of) & (share_of <= high)).mean())
        z.append((share.values - share_of) / share.stderr)
        assert not tables[TableName.FOUND].values[500:].any()
        assert tables[TableName.FOUND].values[:3].all()
    assert 0.94 <= np.mean(covered) <= 0.99
    assert np.mean(z) == pytest.approx(0, abs=0.1)
    assert np.std(z) == pytest.approx(1, abs=0.1)
    # The frequent ones do not lose to those that chance makes large.
    assert abs(np.mean([of_window[:5] for of_window in z])) < 1


def test_few_candidates_are_all_fitted_together_and_many_are_not() -> None:
    facts = [dict(decoder_of("bloom", 2.0, [f"s{i}" for i in range(k)]).describe(1000, "auto")) for k in (1024, 1025)]
    assert facts[0]["candidates"] == "1,024 of the strings"
    assert facts[1]["candidates"] == "1,025 of the strings, of which up to 512 that are found are fitted together"


@pytest.mark.nightly
def test_a_hundred_thousand_candidates_take_seconds_and_little_memory() -> None:
    import resource
    import time

    names = [f"s{i}" for i in range(100_000)]
    of = decoder_of("cohort-olh", 1.0, names)
    symbols = np.array([string_symbol(name, 16) for name in names[:3]])
    cells = draw_cells(of.channel, symbols, np.array([0.5, 0.3, 0.2]), 100_000, np.random.default_rng(1))
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = {table.name: table for table in of.tables(cells, 100_000, "empirical")}[TableName.FOUND]
    assert time.process_time() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    assert np.flatnonzero(found.values).tolist() == [0, 1, 2]


@each
def test_where_no_candidate_is_found_all_shares_are_unexplained(mechanism: str) -> None:
    of = decoder(mechanism)
    n = of.channel.cohorts * of.channel.positions
    cells = np.ones(n, dtype=np.int64)
    if mechanism == "bloom":  # the number of reports of each cohort comes first
        cells = np.full((of.channel.cohorts, 1 + of.channel.positions), 5)
        cells[:, 0], n = 10, 10 * of.channel.cohorts
    share, unexplained, *_ = of.tables(cells.ravel(), n, "auto")
    assert not share.values.any()
    assert 0 <= unexplained.values[0] <= 1
