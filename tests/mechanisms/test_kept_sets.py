"""Windows together of devices that keep their responses to sets, pairs and strings: the errors of what is published."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.table import TableName

NAMES = [f"s{i}" for i in range(40)]
WINDOWS, TOGETHER, N = 120, 6, 500
SETS: dict[str, dict[str, Any]] = {
    "set-ss": {"domain": {"set": {"of": {"size": 12}, "at_most": 3}}},
    "set-olh": {"domain": {"set": {"of": {"size": 12}, "at_most": 3}}},
    "pairs": {"domain": {"pairs": {"of": {"size": 6}, "at_most": 2, "low": 0.0, "high": 1.0}}},
    "cohort-olh": {"domain": {"strings": {"longest": 16}}, "candidates": NAMES[:20]},
    "bloom": {"domain": {"strings": {"longest": 16}}, "candidates": NAMES[:20]},
}


def users(name: str, rng: Generator) -> Held:
    """What N users hold: up to three of twelve items, up to two of six keys, or one of the names."""
    untagged = np.full(N, -1)
    if name not in ("set-ss", "set-olh", "pairs"):
        return Held(np.array(NAMES, dtype=np.object_)[rng.integers(0, 40, N) * rng.integers(0, 2, N)], untagged)
    items, most = (6, 2) if name == "pairs" else (12, 3)
    order = rng.permuted(np.tile(np.arange(items), (N, 1)), axis=1)
    held = np.where(np.arange(items) < rng.integers(0, most + 1, N)[:, np.newaxis], order, -1)
    return Held(np.stack([held, held >= 0], axis=2).astype(np.float64) if name == "pairs" else held, untagged)


@pytest.mark.parametrize("name", SETS)
def test_standard_errors_are_those_of_kept_responses(name: str) -> None:
    mechanism = {"name": "set-ss" if name == "pairs" else name, "epsilon": 1.0, "lasting_epsilon": 2.0}
    protocol, rng = build_protocol(build.spec(mechanism=mechanism, **SETS[name])), default_rng(7)
    kept = protocol.mechanism
    assert isinstance(kept, Memoized)
    values, errors = [], []
    for _ in range(WINDOWS):
        responses = kept.inner.perturb(protocol.encoding.encode([users(name, rng)], rng), rng)
        cells = np.sum([kept.statistic(kept.again(responses, rng)) for _ in range(TOGETHER)], axis=0)
        tables = protocol.decoder.tables(cells, N * TOGETHER, "empirical", TOGETHER - 1.0)
        own = [each for each in tables if each.name in (TableName.SHARE, TableName.MEAN_SIZE, TableName.UNEXPLAINED)]
        values.append(np.concatenate([each.unbiased for each in own]))
        errors.append(np.concatenate([each.stderr for each in own]))
    ratio = np.mean(errors, axis=0) / np.std(values, axis=0)
    # The relative error of a standard deviation of 120 windows is .065; as of different devices it would be .7 or less.
    assert np.mean(ratio) == pytest.approx(1, abs=0.08)
    assert ratio.min() > 0.75
