"""Intervals that allow for forgers hold the truth, whichever possible payload forgers choose; see ``with_forgers``."""

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import Example, examples
from tests.mechanisms.test_far_payloads import WHOLE, possible_payloads
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.inference.assumed_forgers import with_forgers
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Table, TableName

N, FORGED = 10_000, 500


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
    return with_forgers(table, protocol.decoder, FORGED / N, N)


def ends(table: Table) -> tuple[Floats, Floats, Floats, Floats]:
    assert table.low is not None
    assert table.high is not None
    assert table.low_forged is not None
    assert table.high_forged is not None
    return table.low_forged, table.low, table.high, table.high_forged


@pytest.mark.parametrize("name", WHOLE)
def test_the_heaviest_payload_of_all_forgers_stays_in_the_interval(name: str) -> None:
    example = examples()[name]
    cells, entry = worst_window(example)
    of_values = TableName.VISIBLE if example.spec.variables[""].tags else TableName.SHARE
    quantity, truth = TableName.MEAN if len(example.truth) == 1 else of_values, example.truth[entry]
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
    (table, *_) = protocol.decoder.tables(every + forgers * payload, n, "empirical")
    low_forged, low, _, high_forged = ends(with_forgers(table, protocol.decoder, forgers / n, n))
    at = int(table.values.argmax())
    assert table.values[at] > 0.5
    assert low[at] > 0.3
    assert low_forged[at] < 1 / 40 < high_forged[at]
