"""Published intervals hold at once where a spec says so, and cover with the background of the shipped example."""

from typing import Any

import numpy as np
import pytest

from benchmarks.coverage import measure_manhattan
from tests import build
from tests.mechanisms.protocols import examples, first_specs, specs
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.table import TableName

RECORD = {
    "domain": {"record": {"app": {"size": 5}, "hours": {"number": {"low": 0, "high": 24}}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "hours": {"name": "duchi"}}},
}


@pytest.mark.parametrize(("keys", "simultaneous"), [({}, False), ({"intervals": "simultaneous"}, True)])
@pytest.mark.parametrize("given", [{}, RECORD], ids=["values", "record"])
def test_the_spec_says_whether_intervals_of_shares_hold_at_once(
    given: dict[str, Any], keys: dict[str, Any], simultaneous: bool
) -> None:
    protocol = build_protocol(build.spec(**given | keys))
    zeros = np.zeros(50, dtype=np.int64)
    held = [Held(zeros, zeros - 1), Held(np.zeros(50), zeros - 1)][: 2 if given else 1]
    cells = protocol.mechanism.statistic(protocol.perturb(held, np.random.default_rng(1)))
    tables = {table.name: table for table in protocol.decoder.tables(cells, 50, "empirical")}
    assert tables[TableName.SHARE].simultaneous is simultaneous
    assert not given or tables[TableName.MEAN].simultaneous is False


def test_intervals_cover_with_the_wrong_background_of_the_example() -> None:
    # Far from the limits, by more than the noise of 20 windows of 625 values: 0.98, 0.99, 0.99, 0.98 and 0.99.
    coverage = measure_manhattan(60_000, 20)
    assert coverage.visible >= 0.95
    assert coverage.share >= 0.95
    assert coverage.occupied >= 0.95
    assert coverage.hidden >= 0.95
    assert coverage.band >= 0.98


@pytest.mark.parametrize("name", [name for name, keys in first_specs().items() if "number" not in keys["domain"]])
def test_intervals_that_hold_at_once_are_wider(name: str) -> None:
    keys, rng = first_specs()[name], np.random.default_rng(2)
    example = examples()[next(each for each, of in specs().items() if of is keys)]
    cells = example.protocol.mechanism.statistic(example.protocol.perturb(example.hold(rng, 2000), rng))
    at_once = build_protocol(build.spec(**keys, intervals="simultaneous")).decoder.tables(cells, 2000, "empirical")
    for one, both in zip(example.protocol.decoder.tables(cells, 2000, "empirical"), at_once, strict=True):
        assert not one.simultaneous
        if one.low is None or one.high is None or both.low is None or both.high is None or not both.simultaneous:
            continue
        assert ((both.low <= one.low) & (one.high <= both.high)).all()
        assert len(one.values) == 1 or ((both.low < one.low) | (one.high < both.high)).any()
