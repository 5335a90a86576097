"""The first ten mechanisms are what they were before a mechanism could be anything else, to the last count.

``golden_ten.json`` was made by commit 00d3a3b. Its entries rr, warner and urr were made anew when randomized response
began to draw a symbol of noise for each report; ``test_draws`` has their law, which is that of before. Payloads (their
SHA-256) and counts are integers, and must be equal. Floats are written as hexadecimal numbers; the last digits of a
logarithm or of a sum depend on the processor. Intervals are others since then, and so is the standard error of a share
that background adds to: errors of sums are at the distribution of ``wls``.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from tests.build import spec
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats
from uldp.schemas.table import Table

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden_ten.json").read_text(encoding="utf-8"))
N = 3000


def floats(written: list[str]) -> Floats:
    return np.array([float.fromhex(number) for number in written])


def assert_same(found: npt.ArrayLike, written: list[str]) -> None:
    np.testing.assert_allclose(cast(Floats, found), floats(written), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", GOLDEN)
def test_payloads_counts_and_estimates_are_those_of_before(name: str) -> None:
    golden = GOLDEN[name]
    collection = spec(**golden["spec"])
    protocol = build_protocol(collection)
    i = np.arange(N)
    tags = np.where(i % 5 == 0, i % (len(collection.tags) + 1) - 1, -1)
    payloads = protocol.perturb([Held(i * i % collection.size, tags)], np.random.default_rng(2026))
    wire = payloads.astype("<u4") if payloads.ndim == 1 else payloads
    assert hashlib.sha256(wire.tobytes()).hexdigest() == golden["payloads"]
    counts = protocol.mechanism.statistic(payloads)
    assert counts.tolist() == golden["counts"]
    newer = {"auto", "wls"}
    assert [name for name in protocol.decoder.estimators if name not in newer] == list(golden["estimates"])
    for estimator, estimate in golden["estimates"].items():
        tables: dict[str, Table] = {table.name: table for table in protocol.decoder.tables(counts, N, estimator)}
        # Later tables have tests of their own.
        assert tables.keys() - {"visible", "band"} == estimate.keys()
        for table, values in estimate.items():
            assert_same(tables[table].values, values)
        for table, stderr in golden["stderr"].items():
            assert_same(tables[table].stderr, stderr)
