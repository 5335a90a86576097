"""The shares of candidates: collisions with other strings, and the tables."""

import math

import numpy as np
import pytest

from benchmarks.candidates import decoder_of, draw_cells, shares
from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohorts import hash_positions, string_symbol
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import TableName

NAMES = [f"s{i}" for i in range(2000)]
each = pytest.mark.parametrize("mechanism", ["cohort-olh", "bloom"])


def cells_of(decoder: CandidateDecoder, n: int, seed: int = 0, held: Floats | None = None) -> Counts:
    """The cells of n users who hold ``NAMES``."""
    symbols = np.array([string_symbol(name, 16) for name in NAMES])
    return draw_cells(decoder.channel, symbols, shares() if held is None else held, n, np.random.default_rng(seed))


@each
def test_the_law_of_the_benchmark_is_that_of_the_mechanism(mechanism: str) -> None:
    # Over 300 windows, the means and variances of sums of cells agree: of each candidate's positions, and of all cells.
    keys = {"name": mechanism, "epsilon": 2.0, "cohorts": 8}
    spec = build.spec(domain={"strings": {"longest": 16}}, mechanism=keys, candidates=NAMES[:3])
    protocol = build_protocol(spec)
    decoder, n, windows = protocol.decoder, 300, 300
    assert isinstance(decoder, CandidateDecoder)
    symbols, rng = np.array([string_symbol(name, 16) for name in NAMES[:4]]), np.random.default_rng(5)
    p = np.array([0.4, 0.3, 0.2, 0.1])
    payloads = protocol.mechanism.perturb(symbols[rng.choice(4, n * windows, p=p)], rng)
    groups = np.arange(windows).repeat(n)
    reported = [as_dense(cells) for cells in protocol.mechanism.tally([payloads], groups, windows)]
    drawn = [draw_cells(decoder.channel, symbols, p, n, rng) for _ in range(windows)]
    both = [np.array([decoder.linear(cells, n).values for cells in of]) for of in (reported, drawn)]
    means, variances = (np.array([f(of, axis=0) for of in both]) for f in (np.mean, np.var))
    assert (np.abs(means[0] - means[1]) / np.sqrt(variances.sum(axis=0) / windows)).max() < 5
    assert np.abs(np.log(variances[0] / variances[1])).max() < 5 * math.sqrt(4 / windows)


@each
def test_the_error_of_many_reports_is_that_of_collisions(mechanism: str) -> None:
    keys = {"name": mechanism, "epsilon": 4.0, "cohorts": 32}
    decoder = build_protocol(
        build.spec(domain={"strings": {"longest": 16}}, mechanism=keys, candidates=NAMES[4:24])
    ).decoder
    assert isinstance(decoder, CandidateDecoder)
    rest = float((shares() ** 2).sum() - (shares()[4:24] ** 2).sum())
    few, many = (decoder.estimate(cells_of(decoder, n), n) for n in (10_000, 1_000_000))
    # The residuals of a million reports show the sum of the squared shares of all other strings.
    assert many.collisions == pytest.approx(rest, rel=0.2)
    # Without collisions, a hundred times as many reports would have a tenth of the error.
    assert np.sqrt(many.variance / few.variance).min() > 0.3
    z = (many.values - shares()[4:24]) / np.sqrt(many.variance)
    assert np.abs(z).max() < 5


@each
def test_auto_is_a_part_of_a_distribution_near_the_unbiased_estimate(mechanism: str) -> None:
    decoder = decoder_of(mechanism, 1.0, NAMES[:60])
    cells = cells_of(decoder, 3000)
    unbiased, auto = (
        {table.name: table for table in decoder.tables(cells, 3000, estimator)} for estimator in ("empirical", "auto")
    )
    assert unbiased[TableName.SHARE].values.min() < 0
    assert auto[TableName.SHARE].values.min() >= 0
    for tables in (unbiased, auto):
        total = tables[TableName.SHARE].values.sum() + tables[TableName.UNEXPLAINED].values[0]
        assert total == pytest.approx(1)
    for name in (TableName.P_VALUE, TableName.FOUND):
        assert auto[name].values.tolist() == unbiased[name].values.tolist()
    found = auto[TableName.P_VALUE].values <= 0.05 / 60
    assert auto[TableName.FOUND].values.tolist() == found.tolist()


def test_strings_that_no_cohort_tells_apart_share_what_they_have() -> None:
    buckets = hash_positions(np.array(0), np.array([string_symbol(name, 16) for name in NAMES]), 1, 17)[:, 0]
    alike = [NAMES[i] for i in np.flatnonzero(buckets == buckets[0])[:2]]
    mechanism = {"name": "cohort-olh", "epsilon": 3.0, "buckets": 17, "cohorts": 1}
    spec = build.spec(domain={"strings": {"longest": 16}}, mechanism=mechanism, candidates=alike)
    decoder = build_protocol(spec).decoder
    assert isinstance(decoder, CandidateDecoder)
    cells = cells_of(decoder, 10_000, held=np.eye(2000)[0])
    assert decoder.linear(cells, 10_000).values == pytest.approx([0.5, 0.5], abs=0.05)


@each
def test_reports_of_one_cohort_are_improbable(mechanism: str) -> None:
    decoder = decoder_of(mechanism, 2.0, NAMES[:3])
    cells = cells_of(decoder, 5000)
    assert decoder.p_values(cells, 5000)[Flag.IMPROBABLE_COUNTS] > 0.01
    forged = np.zeros_like(cells).reshape(decoder.channel.cohorts, -1)
    forged[3] = 5000
    if mechanism == "cohort-olh":
        forged[3, 1:] = 0
    assert decoder.p_values(forged.ravel(), 5000)[Flag.IMPROBABLE_COUNTS] < 1e-9
