"""Tables of several attributes: consistent, with shares given others, and tests of independence."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests.build import spec
from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats, Values
from uldp.schemas.table import Table, TableName

SIZES = (2, 3, 5, 4)
NAMES = ("new", "app", "version", "place")


def protocol(views: object = "pairs", epsilon: float = 1.0, given: Sequence[Sequence[str]] = ()) -> LdpProtocol:
    record = {name: {"size": size} for name, size in zip(NAMES, SIZES, strict=True)}
    keys = {"name": "marginals", "epsilon": epsilon, "views": views}
    return build_protocol(spec(domain={"record": record}, mechanism=keys, given=list(given)))


def window(of: LdpProtocol, columns: Sequence[Values], rng: Generator) -> Counts:
    payloads = of.perturb([Held(column, np.full(len(column), -1)) for column in columns], rng)
    return of.mechanism.statistic(payloads)


def drawn(rng: Generator, n: int) -> list[Values]:
    """Values of users, each attribute of which depends on the one before."""
    columns: list[Values] = [rng.choice(SIZES[0], n, p=[0.3, 0.7])]
    for size in SIZES[1:]:
        columns.append(np.where(rng.random(n) < 0.5, columns[-1] % size, rng.integers(0, size, n)))
    return columns


def truth(columns: Sequence[Values], of: Sequence[str]) -> Floats:
    which = [NAMES.index(name) for name in of]
    shape = [SIZES[each] for each in which]
    cells = np.ravel_multi_index([columns[each] for each in which], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))) / len(columns[0])


def shares(tables: Sequence[Table]) -> dict[tuple[str, ...], Table]:
    return {table.of: table for table in tables if table.name is TableName.SHARE}


@pytest.mark.parametrize("views", ["pairs", "triples", "auto", [["new", "app", "place"], ["version", "app"]]])
@pytest.mark.parametrize("estimator", ["auto", "empirical"])
def test_tables_are_consistent(views: object, estimator: str) -> None:
    of, rng = protocol(views, 2.0), default_rng(1)
    found = shares(of.decoder.tables(window(of, drawn(rng, 2_000), rng), 2_000, estimator))
    assert all((name,) in found for name in NAMES)
    for names, table in found.items():
        values = table.values.reshape(table.shape)
        assert values.sum() == pytest.approx(1.0, abs=1e-12)
        assert estimator == "empirical" or values.min() >= 0.0
        for axis, name in enumerate(names):
            others = tuple(other for other in range(len(names)) if other != axis)
            assert values.sum(axis=others) == pytest.approx(found[name,].values, abs=1e-12)


def test_a_view_without_reports_leaves_its_tables_out() -> None:
    of, rng = protocol([["new", "app"], ["version", "place"]]), default_rng(3)
    assert isinstance(of.mechanism, Strata)
    only = window(of, drawn(rng, 500), rng)
    (_, reports), (second, _) = of.mechanism.split_cells(only)
    only[len(only) - len(second) - (not of.mechanism.parts[1].partitions) :] = 0
    found = of.decoder.tables(only, reports, "auto")
    assert {table.of for table in found if table.name is TableName.SHARE} == {("new",), ("app",), ("new", "app")}
    assert of.decoder.linear(only, reports).n.tolist() == [reports] * (2 + 3 + 6)


def test_given_is_a_row_of_the_table_and_its_interval_covers() -> None:
    of, covered = protocol(epsilon=2.0, given=[["version", "new"], ["app", "place"]]), []
    for seed in range(30):
        rng = default_rng(seed)
        users = drawn(rng, 6_000)
        found = of.decoder.tables(window(of, users, rng), 6_000, "auto")
        for table in (table for table in found if table.name is TableName.GIVEN):
            rows = table.values.reshape(table.shape)
            assert rows.sum(axis=1) == pytest.approx(1.0)
            exact = truth(users, table.of).reshape(table.shape)
            exact = exact / exact.sum(axis=1, keepdims=True)
            low, high = ends_of(table)
            covered.append(((low <= exact.ravel()) & (exact.ravel() <= high)).mean())
    assert [table.of for table in found if table.name is TableName.GIVEN] == [("version", "new"), ("app", "place")]
    assert 0.93 <= np.mean(covered) <= 0.98


def test_dependent_attributes_are_found() -> None:
    of, rng = protocol(epsilon=2.0), default_rng(8)
    found = of.decoder.tables(window(of, drawn(rng, 20_000), rng), 20_000, "auto")
    (table,) = (table for table in found if table.name is TableName.INDEPENDENCE)
    assert table.keys is not None
    p_values = dict(zip(table.keys, table.values, strict=True))
    assert p_values["new x app"] < 1e-6
    assert set(p_values) == {f"{one} x {two}" for i, one in enumerate(NAMES) for two in NAMES[i + 1 :]}


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_one_report_moves_a_share_by_no_more_than_the_heaviest(epsilon: float) -> None:
    of, rng, n = protocol([["new", "app"], ["app", "version"], ["place"]], epsilon), default_rng(9), 3_000
    assert isinstance(of.mechanism, Strata)
    # Each view has its share of the reports, as far as they are forecast.
    part = np.arange(n) % 3
    symbols = [of.mechanism.first_symbols[each] + rng.integers(0, of.mechanism.parts[each].size) for each in part]
    payloads = of.mechanism.perturb(np.array(symbols), rng)
    before = of.decoder.linear(of.mechanism.statistic(payloads), n).values
    moved = []
    for view, _ in product(range(3), range(40)):
        forged, swapped = payloads.copy(), int(rng.choice(np.flatnonzero(part == view)))
        symbol = of.mechanism.first_symbols[view] + rng.integers(0, of.mechanism.parts[view].size)
        forged[swapped] = of.mechanism.perturb(np.array([symbol]), rng)[0]
        moved.append(of.decoder.linear(of.mechanism.statistic(forged), n).values - before)
    tables = shares(of.decoder.tables(of.mechanism.statistic(payloads), n, "empirical"))
    ends = np.cumsum([len(table.values) for table in tables.values()])[:-1]
    for table, own in zip(tables.values(), np.split(np.abs(moved), ends, axis=1), strict=True):
        most = of.decoder.heaviest(table)
        assert most is not None
        # A report that takes the place of another moves a share by both.
        assert 0.4 * most / table.n <= own.max() <= 2.000001 * most / table.n
