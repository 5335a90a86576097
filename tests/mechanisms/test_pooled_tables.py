"""The tables of several versions: those of shares with and without tags, of means, and of records."""

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests.mechanisms.estimates import ends_of
from tests.mechanisms.protocols import Example, examples
from uldp.mechanisms.pooling.pooled_tables import VersionCounts, pooled_tables
from uldp.schemas.table import NUMBERS, Table, TableName

EXAMPLES = examples()
N = 2000
#: Examples whose devices hold the same, grouped by what they estimate.
SHARES = ("rr", "urr", "sue", "oue", "urap", "uoue", "ss", "olh", "rappor")
TAGS = ("urr with a tag", "urap with a tag", "urr with a permanent response")
RECORDS = ("record of symbols", "record of bytes", "record of bits")
MEANS = ("duchi", "duchi at a large epsilon", "block", "block, piecewise", "block, square wave")


def counted(name: str, rng: Generator, n: int = N) -> VersionCounts:
    """What the example's version counts of n devices."""
    example: Example = EXAMPLES[name]
    protocol = example.protocol
    cells = protocol.mechanism.statistic(protocol.perturb(example.hold(rng, n), rng))
    return VersionCounts(protocol.decoder, cells, n)


def key(table: Table) -> tuple[TableName, tuple[str, ...]]:
    return table.name, table.of


@pytest.mark.parametrize("name", ["identity", *SHARES, *TAGS, *MEANS, *RECORDS])
def test_one_version_alone_has_its_own_errors_and_intervals(name: str) -> None:
    version = counted(name, default_rng(1))
    alone = {key(table): table for table in version.decoder.tables(version.cells, version.n, "empirical")}
    pooled = pooled_tables([version]).tables
    assert [key(table) for table in pooled] == list(alone)
    for table in pooled:
        own = alone[key(table)]
        assert (table.n, table.shape, table.keys, table.whole) == (own.n, own.shape, own.keys, own.whole)
        assert table.stderr == pytest.approx(own.stderr)
        for end, own_end in ((table.low, own.low), (table.high, own.high)):
            assert (end is None) == (own_end is None)
            if end is not None and own_end is not None:
                # Ends hold what is published, and empirical shares may be below 0.
                of_shares = table.name not in NUMBERS
                assert end == pytest.approx(own_end.clip(0.0, 1.0) if of_shares else own_end, abs=1e-12)


@pytest.mark.parametrize("names", [SHARES, SHARES[::3], TAGS], ids=["all", "three", "tags"])
def test_shares_of_different_mechanisms_become_one_whole(names: tuple[str, ...]) -> None:
    rng = default_rng(2)
    versions = [counted(name, rng) for name in names]
    pooled = pooled_tables(versions)
    share = pooled.tables[0]
    assert (share.name, share.n) == (TableName.SHARE, len(names) * N)
    assert share.values.min() >= 0
    assert share.values.sum() == pytest.approx(1)
    assert (pooled.compared, pooled.contradictory) == (len(EXAMPLES[names[0]].truth), 0)
    alone = [version.decoder.tables(version.cells, version.n, "empirical")[0] for version in versions]
    assert share.stderr.sum() < min(table.stderr.sum() for table in alone)


def test_with_tags_each_quantity_is_covered() -> None:
    truth = EXAMPLES[TAGS[0]].truth
    visible, hidden = truth[:-1], truth[-1:]
    # The tag has no background, so its users may hold any value; those who hide are drawn like all others.
    wanted = {TableName.VISIBLE: visible, TableName.HIDDEN: hidden, TableName.BAND: visible / (1 - hidden[0])}
    covered: dict[TableName, list[float]] = {name: [] for name in wanted}
    rng = default_rng(3)
    for _ in range(150):
        tables = {table.name: table for table in pooled_tables([counted(name, rng) for name in TAGS[:2]]).tables}
        assert tables[TableName.BOUND].values[0] >= 0
        for name, values in wanted.items():
            low, high = ends_of(tables[name])
            covered[name].append(float(((low <= values) & (values <= high)).mean()))
    assert 0.93 <= np.mean(covered[TableName.VISIBLE]) <= 0.99
    # Each window has one tag alone: 4 standard deviations for the noise of the simulation.
    assert np.mean(covered[TableName.HIDDEN]) >= 0.93 - 4 * np.sqrt(0.95 * 0.05 / 150)
    assert np.mean(covered[TableName.BAND]) >= 0.98


def test_means_of_different_mechanisms_are_one_mean() -> None:
    truth, rng, windows = EXAMPLES["duchi"].truth[0], default_rng(4), 200
    found, covered = [], []
    for _ in range(windows):
        (mean,) = pooled_tables([counted(name, rng, 500) for name in MEANS]).tables
        (low,), (high,) = ends_of(mean)
        found.append((mean.values[0], mean.stderr[0]))
        covered.append(low <= truth <= high)
    values, errors = np.array(found).T
    alone = [EXAMPLES[name].protocol.decoder.forecast(500)[0] for name in MEANS]
    assert errors.mean() == pytest.approx(np.sum(np.power(alone, -2.0)) ** -0.5, rel=0.1)
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(windows)
    # The logarithm of a sample variance of normal variables has variance 2/windows.
    assert abs(np.log(values.var() / np.mean(errors**2))) < 4 * np.sqrt(2 / windows)
    assert np.mean(covered) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / windows)


def test_an_attribute_without_reports_of_a_version_comes_from_the_others() -> None:
    version = counted("record of symbols", default_rng(6))
    nothing = VersionCounts(version.decoder, np.zeros_like(version.cells), 0)
    pooled, alone = pooled_tables([version, nothing]).tables, pooled_tables([version]).tables
    assert [table.values.tolist() for table in pooled] == [table.values.tolist() for table in alone]


def test_shares_and_means_are_not_pooled() -> None:
    rng = default_rng(7)
    with pytest.raises(ValueError, match="mechanisms of these versions cannot be pooled together"):
        pooled_tables([counted("rr", rng), counted("duchi", rng)])


def test_cells_that_no_reports_give_are_refused() -> None:
    version = counted("rr", default_rng(8))
    with pytest.raises(ValueError, match="the cells sum to"):
        pooled_tables([version, version._replace(cells=version.cells + 1)])
