"""Intervals that allow for forgers hold the truth, whichever possible payload forgers choose; see ``with_forgers``."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import Example, examples
from tests.mechanisms.test_far_payloads import WHOLE, possible_payloads
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.estimators.ems import GridChannel
from uldp.mechanisms.families.block.distribution import QUANTILE_LEVELS, shares_up_to
from uldp.mechanisms.inference.forgery import all_with_forgers, with_forgers
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats, Payloads
from uldp.schemas.specs.kinds import Ranking
from uldp.schemas.table import Table, TableName

N, FORGED = 10_000, 500


def _one_number_of_reports(example: Example) -> bool:
    """Whether all reports are about the one variable of the spec, and all are behind each of its tables."""
    nothing = np.zeros(example.protocol.mechanism.statistic_size, dtype=np.int64)
    return "" in example.spec.variables and len(example.protocol.decoder.reports(nothing, 0)) == 1


OF_ALL_REPORTS = [name for name in WHOLE if _one_number_of_reports(examples()[name])]


def worst_window(example: Example) -> tuple[Counts, int]:
    """Return cells of ``N`` reports, ``FORGED`` of them the payload that moves a value the farthest, and this value."""
    protocol, rng = example.protocol, np.random.default_rng(11)
    honest = protocol.perturb(example.hold(rng, N), rng)
    cells = protocol.mechanism.statistic(honest[FORGED:])
    payloads = np.concatenate([honest[:200], *(each[::10] for each in possible_payloads(protocol.mechanism))])
    tried = protocol.mechanism.tally([payloads], np.arange(len(payloads)), len(payloads))
    before, found = protocol.decoder.linear(cells, N - FORGED).values, list(map(as_dense, tried))
    values = slice(example.spec.variables[""].size or None)
    moved = [np.abs(protocol.decoder.linear(cells + each, N - FORGED + 1).values - before)[values] for each in found]
    best = int(np.argmax([each.max() for each in moved]))
    return cells + FORGED * found[best], int(moved[best].argmax())


def forged_table(protocol: LdpProtocol, cells: Counts, name: TableName, of: tuple[str, ...] = ()) -> Table:
    tables = protocol.decoder.tables(cells, N, "empirical")
    (table,) = (table for table in tables if (table.name, table.of) == (name, of))
    return with_forgers(table, protocol.decoder, FORGED / N, cells, N)


def ends(table: Table) -> tuple[Floats, Floats, Floats, Floats]:
    assert table.low is not None
    assert table.high is not None
    assert table.low_forged is not None
    assert table.high_forged is not None
    return table.low_forged, table.low, table.high, table.high_forged


@pytest.mark.parametrize("name", OF_ALL_REPORTS)
def test_the_heaviest_payload_of_all_forgers_stays_in_the_interval(name: str) -> None:
    example = examples()[name]
    cells, entry = worst_window(example)
    variable, truth = example.spec.variables[""], example.truth[entry]
    of_values = TableName.VISIBLE if variable.tags else TableName.SHARE
    no_shares = len(example.truth) == 1 or isinstance(variable.kind, Ranking)
    quantity = example.protocol.decoder.quantity if no_shares else of_values
    least, low, high, most = (float(end[entry]) for end in ends(forged_table(example.protocol, cells, quantity)))
    assert least <= low <= high <= most
    assert least <= truth <= most
    assert not low <= truth <= high  # the interval of honest reports misses it


def test_forgers_may_all_report_about_one_attribute_of_a_record() -> None:
    """A record of four rr of 40 values: 1 % of all reports take one attribute from 3.6 to 94.5 % (audit)."""
    names = [f"a{i}" for i in range(4)]
    keys = {"record": {name: {"size": 40} for name in names}}
    of = {name: {"name": "rr"} for name in names}
    protocol = build_protocol(build.spec(domain=keys, mechanism={"name": "sample-one", "epsilon": 1.0, "of": of}))
    rng, n, forgers = np.random.default_rng(4), 20_000, 200
    hidden = np.full(n, -1)
    honest = protocol.perturb([Held(rng.integers(0, 40, n), hidden) for _ in names], rng)
    every = protocol.mechanism.statistic(honest[forgers:])
    of_each = [as_dense(each) for each in protocol.mechanism.tally([honest[:2000]], np.arange(2000), 2000)]
    (payload,) = {each.tobytes(): each for each in of_each if each[1]}.values()
    cells = every + forgers * payload
    (table, *_) = protocol.decoder.tables(cells, n, "empirical")
    low_forged, low, _, high_forged = ends(with_forgers(table, protocol.decoder, forgers / n, cells, n))
    at = int(table.values.argmax())
    assert table.values[at] > 0.5
    assert low[at] > 0.3
    assert low_forged[at] < 1 / 40 < high_forged[at]


def moved_farthest(protocol: LdpProtocol, payloads: Payloads, entry: Callable[[Counts], float], least: bool) -> Counts:
    """Return cells of ``N`` reports, of which the last ``FORGED`` all are the payload that moves an entry farthest."""
    honest = protocol.mechanism.statistic(payloads[:-FORGED])
    tried = [*map(as_dense, protocol.mechanism.tally([payloads[:300]], np.arange(300), 300))]
    windows = [honest + FORGED * each for each in tried]
    return (min if least else max)(windows, key=entry)


@pytest.mark.parametrize(("name", "quantity", "least", "missed"), [
    ("cohort-olh", TableName.UNEXPLAINED, False, False),
    ("set-olh of strings", TableName.MEAN_SIZE, False, True),
    ("set-olh of strings", TableName.MEAN_SIZE, True, False),
])  # fmt: skip
def test_the_heaviest_payload_leaves_the_sum_of_shares_in_the_interval(
    name: str, quantity: TableName, least: bool, missed: bool
) -> None:
    example, rng = examples()[name], np.random.default_rng(8)
    payloads = example.protocol.perturb(example.hold(rng, N), rng)
    total = example.truth.sum()
    cells = moved_farthest(
        example.protocol, payloads, lambda of: example.protocol.decoder.linear(of, N).values.sum(), least
    )
    lower, low, high, upper = (float(end[0]) for end in ends(forged_table(example.protocol, cells, quantity)))
    truth = total if quantity is TableName.MEAN_SIZE else 1 - total
    assert lower <= truth <= upper
    assert (low <= truth <= high) != missed


@pytest.mark.parametrize("name", ["cohort-olh", "bloom", "set-ss of pairs"])
def test_what_forgers_alone_may_bring_about_is_not_found(name: str) -> None:
    protocol, rng = examples()[name].protocol, np.random.default_rng(3)
    cells = protocol.mechanism.statistic(protocol.perturb(examples()[name].hold(rng, N), rng))
    tables = protocol.decoder.tables(cells, N, "empirical")
    for share in (1e-9, 0.02, 0.9):
        of = {table.name: table for table in all_with_forgers(tables, protocol.decoder, share, cells, N)}
        least, *_ = ends(of[TableName.SHARE])
        before = next(table for table in tables if table.name is TableName.FOUND).values
        assert of[TableName.FOUND].values.tolist() == (before * (least > 0)).tolist()
        assert before.any()
        assert of[TableName.FOUND].values.any() == (share < 0.5)


#: Numbers of 0 to 1, as functions of uniform ones.
NUMBERS: Mapping[str, Callable[[Floats], Floats]] = {
    "uniform": lambda u: u,
    "a peak": lambda u: 0.3 + 0.02 * (u - 0.5),
    "two parts": lambda u: np.where(u < 0.6, u / 4, 0.8 + u / 10),
    "an atom": lambda u: np.where(u < 0.4, 0.5, u),
}


def block(bins: int, estimator: str = "ems") -> LdpProtocol:
    number = {"number": {"low": 0.0, "high": 1.0}}
    mechanism = {"name": "block", "epsilon": 1.0, "bins": bins}
    return build_protocol(build.spec(domain=number, mechanism=mechanism, estimator=estimator))


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("side", ["first", "last", "middle"])
def test_bins_and_quantiles_hold_the_truth_whichever_output_forgers_choose(numbers: str, side: str) -> None:
    protocol, rng, n, forged = block(48), np.random.default_rng(21), 20_000, 1_000
    values = NUMBERS[numbers](rng.random(n - forged))
    honest = protocol.perturb([Held(values, np.full(len(values), -1))], rng)
    cells = np.array(protocol.mechanism.statistic(honest))
    cells[{"first": 0, "last": -1, "middle": len(cells) // 2}[side]] += forged
    every = NUMBERS[numbers](np.linspace(0, 1, 200_001))
    truths = {
        TableName.SHARE: np.histogram(every, 48, (0, 1))[0] / len(every),
        TableName.QUANTILE: np.quantile(every, QUANTILE_LEVELS),
    }
    for table in protocol.decoder.tables(cells, n, "ems"):
        if table.name in truths:
            least, low, high, most = ends(with_forgers(table, protocol.decoder, forged / n, cells, n))
            truth = truths[table.name]
            assert ((least <= low) & (high <= most)).all()
            assert ((least - 1e-9 <= truth) & (truth <= most + 1e-9)).all()


@pytest.mark.parametrize("forged", [0, 30, 300])
def test_shares_up_to_a_point_are_bounded_for_any_honest_part(forged: int) -> None:
    """The bounds of the whole are no tighter than those of the honest reports, whichever these are."""
    channel, rng = GridChannel(24, 9, 0.6), np.random.default_rng(5)
    honest = rng.multinomial(3_000, channel.outputs(rng.dirichlet(np.ones(25))))
    bounds = shares_up_to(channel, honest, 0.95)
    for output in (0, 8, 9, 20, len(honest) - 1):
        cells = honest.copy()
        cells[output] += forged
        low, high = shares_up_to(channel, cells, 0.95, forged)
        # Each honest end may come of any of the lengths of windows, which depend on n; so a sliver remains.
        assert (low <= bounds[0] + (1e-9 if not forged else 0.02)).all()
        assert (high >= bounds[1] - (1e-9 if not forged else 0.02)).all()


def test_so_many_forgers_leave_nothing_known() -> None:
    low, high = shares_up_to(GridChannel(4, 2, 0.5), np.array([5, 5, 5, 5, 5, 5]), 0.95, 30)
    assert (low[:-1].tolist(), high.tolist()) == ([0.0] * 4, [1.0] * 5)


def test_forgers_of_one_value_are_honest_users_of_another_distribution_under_rr() -> None:
    """So no test of the counts can flag 1.6 % of the reports: see docs/threats.md."""
    protocol = build_protocol(build.spec(domain={"size": 100}, mechanism={"name": "rr", "epsilon": 1.0}))
    law, honest, forged, target = protocol.mechanism.law, np.full(100, 0.01), 0.016, np.arange(100) == 7
    looks = (1 - forged) * honest - forged / math.expm1(1.0)
    looks[7] += 1 - looks.sum()
    assert looks.min() >= 0
    mixed = (1 - forged) * np.asarray(law(honest)) + forged * target
    np.testing.assert_allclose(mixed, np.asarray(law(looks)), rtol=1e-12)
    assert looks[7] - honest[7] > 50 * forged
