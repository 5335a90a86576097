"""Reports to count, and their counts one report at a time."""

from collections import Counter

import numpy as np
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR
from uldp.collector.collections import serve
from uldp.collector.columns import ReportColumns
from uldp.collector.partial import Partial
from uldp.mechanisms.protocol.cells import as_dense
from uldp.schemas.arrays import Payloads
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec

SIZE = 11  # 10 values and a tag: bits of 2 bytes


def make_spec(collection: str, mechanism: str) -> CollectionSpec:
    return build.spec(
        collection=collection,
        domain={"size": SIZE - 1},
        mechanism={"name": mechanism, "epsilon": 1.0},
        sensitive=[0, 1, 2],
        tags=[{"name": "home"}],
    )


SYMBOLS, BITS = make_spec("symbols", "urr"), make_spec("bits", "urap")
SPECS = [SYMBOLS, BITS]
TARGETS = serve(SPECS)

#: A report as its slice, in hours, and the symbols that it supports: one, or any number.
ONE_SYMBOL = st.tuples(st.integers(0, 3) | st.integers(0, 99), st.integers(0, SIZE - 1).map(lambda symbol: {symbol}))
ANY_BITS = st.tuples(st.integers(0, 3) | st.integers(0, 99), st.sets(st.integers(0, SIZE - 1)))


def columns(
    spec: CollectionSpec, reports: list[tuple[int, set[int]]], key: CollectionKey | None = None
) -> ReportColumns:
    payloads: Payloads
    if spec is SYMBOLS:
        payloads = np.array([min(supported) for _, supported in reports], dtype=np.uint32)
    else:
        bits = np.zeros((len(reports), SIZE), dtype=np.uint8)
        for row, (_, supported) in enumerate(reports):
            bits[row, sorted(supported)] = 1
        payloads = np.packbits(bits, axis=1)
    return build.columns([(0, 0)] * len(reports), [hour * HOUR for hour, _ in reports], payloads, key=key or spec.key)


def brute_force(reports: list[tuple[int, set[int]]]) -> dict[int, tuple[list[int], Accounting]]:
    """Counts and accounting of each slice."""
    n = Counter(hour for hour, _ in reports)
    support = Counter((hour, symbol) for hour, supported in reports for symbol in supported)
    return {
        hour * HOUR: ([support[hour, symbol] for symbol in range(SIZE)], Accounting(received=n[hour], counted=n[hour]))
        for hour in n
    }


def value(partial: Partial) -> tuple[list[int] | None, Accounting]:
    return None if partial.cells is None else as_dense(partial.cells).tolist(), partial.accounting
