"""The tables of many windows at once are those of each window alone, to the last bit."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests.build import spec
from tests.mechanisms.estimates import say_the_same
from tests.mechanisms.protocols import Example, example_of, examples
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.cells import as_dense
from uldp.schemas.arrays import Counts
from uldp.schemas.table import Table

#: Few reports and many, equal numbers, and one report.
REPORTS = (200, 1, 37, 200, 900)
#: Beside the examples, which have 8 values: more values than a prior needs, and intervals that cover at once.
OTHERS: dict[str, dict[str, Any]] = {
    "rr, a prior": {"domain": {"size": 23}, "mechanism": {"name": "rr", "epsilon": 1.0}},
    "oue, a prior": {"domain": {"size": 23}, "mechanism": {"name": "oue", "epsilon": 1.0}},
    "rr, simultaneous": {"mechanism": {"name": "rr", "epsilon": 1.0}, "intervals": "simultaneous"},
}
CASES = examples() | {name: example_of(spec(**keys)) for name, keys in OTHERS.items()}
PURE = [name for name, case in CASES.items() if isinstance(case.protocol.decoder, PureDecoder)]


def windows_of(example: Example) -> list[tuple[Counts, int]]:
    rng, protocol = default_rng(1), example.protocol
    reports = [protocol.perturb(example.hold(rng, n), rng) for n in REPORTS]
    cells = [protocol.mechanism.tally([each], np.zeros(len(each), np.int64), 1)[0] for each in reports]
    return [(as_dense(each), n) for each, n in zip(cells, REPORTS, strict=True)]


def assert_same(at_once: Sequence[Sequence[Table]], alone: Iterable[Sequence[Table]]) -> None:
    for tables, others in zip(at_once, alone, strict=True):
        assert all(map(say_the_same, tables, others))
        assert len(tables) == len(others)


@pytest.mark.parametrize("name", PURE)
def test_windows_at_once_have_the_tables_of_each_alone(name: str) -> None:
    decoder, windows = CASES[name].protocol.decoder, windows_of(CASES[name])
    for estimator in decoder.estimators:
        alone = (decoder.tables(*window, estimator) for window in windows)
        assert_same(decoder.tables_of_each(windows, estimator), alone)


@pytest.mark.parametrize("name", sorted(CASES.keys() - set(PURE)))
def test_each_decoder_gives_the_tables_of_each_window(name: str) -> None:
    decoder, windows = CASES[name].protocol.decoder, windows_of(CASES[name])[::4]
    alone = (decoder.tables(*window, decoder.estimators[0]) for window in windows)
    assert_same(decoder.tables_of_each(windows, decoder.estimators[0]), alone)
