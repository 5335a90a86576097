"""The tables of many windows at once are those of each window alone, to the last bit."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests.build import spec
from tests.mechanisms.protocols import Example, examples
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Counts
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table


class Uniform(Example):
    """A protocol of values that devices hold equally often."""

    def hold(self, rng: Generator, n: int) -> list[Held]:
        """See the base class."""
        return [Held(rng.integers(self.spec.size, size=n), np.full(n, -1))]


def _uniform(of: CollectionSpec) -> Uniform:
    return Uniform(of, build_protocol(of), np.full(of.size, 1 / of.size))


#: Few reports and many, equal numbers, and one report.
REPORTS = (200, 1, 37, 200, 900)
#: Beside the examples, which have 8 values: more values than a prior needs, and intervals that cover at once.
OTHERS = {
    "rr, a prior": {"domain": {"size": 23}, "mechanism": {"name": "rr", "epsilon": 1.0}},
    "oue, a prior": {"domain": {"size": 23}, "mechanism": {"name": "oue", "epsilon": 1.0}},
    "rr, simultaneous": {
        "domain": {"size": 4},
        "mechanism": {"name": "rr", "epsilon": 1.0},
        "intervals": "simultaneous",
    },
}
CASES = examples() | {name: _uniform(spec(**keys)) for name, keys in OTHERS.items()}
PURE = [name for name, case in CASES.items() if isinstance(case.protocol.decoder, PureDecoder)]


def windows_of(example: Example) -> list[tuple[Counts, int]]:
    rng, protocol = default_rng(1), example.protocol
    reports = [protocol.perturb(example.hold(rng, n), rng) for n in REPORTS]
    cells = [protocol.mechanism.tally([each], np.zeros(len(each), np.int64), 1)[0] for each in reports]
    return [(as_dense(each), n) for each, n in zip(cells, REPORTS, strict=True)]


def bits(tables: Sequence[Table]) -> list[object]:
    """Return all that tables say, their numbers as bytes."""
    return [
        (
            each.name,
            each.of,
            each.n,
            each.shape,
            each.keys,
            each.level,
            each.whole,
            each.basis,
            each.simultaneous,
            [(name, array.shape, array.dtype, array.tobytes()) for name, array in each.arrays.items()],
        )
        for each in tables
    ]


@pytest.mark.parametrize("name", PURE)
def test_windows_at_once_have_the_tables_of_each_alone(name: str) -> None:
    decoder, windows = CASES[name].protocol.decoder, windows_of(CASES[name])
    for estimator in decoder.estimators:
        at_once = decoder.tables_of_each(windows, estimator)
        assert [bits(each) for each in at_once] == [bits(decoder.tables(*window, estimator)) for window in windows]


def test_each_decoder_gives_the_tables_of_each_window() -> None:
    for name in CASES.keys() - set(PURE):
        decoder, windows = CASES[name].protocol.decoder, windows_of(CASES[name])[::4]
        at_once = decoder.tables_of_each(windows, decoder.estimators[0])
        assert [bits(each) for each in at_once] == [
            bits(decoder.tables(*window, decoder.estimators[0])) for window in windows
        ], name
