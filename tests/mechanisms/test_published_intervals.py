"""Published intervals cover the truth at few reports and at many, and with the background of the shipped example."""

from typing import Any

import numpy as np
import pytest

from benchmarks.coverage import MECHANISMS, SIZE, measure, measure_manhattan, measure_tags
from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.table import TableName

TRIALS = 100
#: Standard deviation of a coverage of 0.95 over the trials of one symbol.
NOISE = np.sqrt(0.95 * 0.05 / TRIALS)
#: So many standard deviations may be missing. There are about 1,200 symbols here, and a normal variable is as far off
#: once in 3.5 million times.
Z = 5


@pytest.mark.parametrize("n", [300, 30_000])
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_cover_common_and_rare_symbols(name: str, n: int) -> None:
    coverage = measure(name, n, TRIALS)
    assert coverage.least >= 0.95 - Z * NOISE
    # Symbols of one window are nearly independent; half of them are common, or more.
    assert 0.95 - Z * NOISE / np.sqrt(SIZE / 2) <= coverage.common <= 0.99
    assert np.isnan(coverage.rare) or coverage.rare >= 0.95


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


def test_intervals_cover_with_tags_whose_backgrounds_are_samples() -> None:
    coverage = measure_tags("urr", 30_000, TRIALS)
    assert min(coverage.visible, coverage.share, coverage.hidden, coverage.band) >= 0.95
    assert coverage.weighted >= 0.93


def test_intervals_cover_with_the_wrong_background_of_the_example() -> None:
    # Far from the limits, by more than the noise of 20 windows of 625 values: 0.98, 0.99, 0.99, 0.98 and 0.99.
    coverage = measure_manhattan(60_000, 20)
    assert coverage.visible >= 0.95
    assert coverage.share >= 0.95
    assert coverage.occupied >= 0.95
    assert coverage.hidden >= 0.95
    assert coverage.band >= 0.98
