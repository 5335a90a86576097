"""Keys with numbers: what a device makes of its pairs, the errors of shares and means, and the means published."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests import build
from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pair_decoder import PairDecoder
from uldp.mechanisms.encodings.set_encoding import PairEncoding
from uldp.mechanisms.families.sets.randomizer import SHARES_OF_KEYS, SetSelection, best_chosen
from uldp.mechanisms.inference.goodness_of_fit import checks
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.held_laws import Keys
from uldp.mechanisms.laws.interval import ratio_interval
from uldp.mechanisms.laws.law import Cumulants
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table, TableName

LOW, HIGH = -10.0, 30.0


def spec_of(keys: int = 6, held: int = 2, epsilon: float = 1.0, **parameters: Any) -> CollectionSpec:
    domain = {"pairs": {"of": {"size": keys}, "at_most": held, "low": LOW, "high": HIGH}}
    return build.spec(domain=domain, mechanism={"name": "set-ss", "epsilon": epsilon, **parameters})


def column_of(spec: CollectionSpec, *pairs: dict[int, float]) -> Held:
    kind = spec.variables[""].kind
    column = kind.column([kind.check(each, "") for each in pairs])
    return Held(np.asarray(column, dtype=np.float64), np.full(len(pairs), -1))


def repeated(held: Held, n: int) -> Held:
    """What n devices like one hold."""
    return Held(np.asarray(np.repeat(held.values, n, axis=0), dtype=np.float64), np.full(n, -1))


def test_a_pair_is_its_key_with_a_sign_that_has_the_mean_of_the_number() -> None:
    spec, encoding = spec_of(), PairEncoding(6, 2, LOW, HIGH)
    ends = encoding.encode([column_of(spec, {2: LOW - 1, 4: HIGH + 1}, {5: HIGH}, {})], default_rng(0))
    assert ends.tolist() == [[4, 9], [11, 12], [12, 13]]
    inside = column_of(spec, {1: 0.0})
    signs = encoding.encode([repeated(inside, 40_000)], default_rng(1))[:, 0] - 2
    assert signs.mean() == pytest.approx(0.25, abs=5 * math.sqrt(0.25 * 0.75 / 40_000))
    assert encoding.law([inside], 14)[2:4] == pytest.approx([0.75, 0.25])


def reports_of(size: int, epsilon: float, held: Sequence[int], chosen: int) -> Floats:
    """The probability of each set of the size of a report."""
    sets = itertools.combinations(range(size), chosen)
    law = np.array([math.exp(epsilon) if {*each} & {*held} else 1.0 for each in sets])
    return np.asarray(law / law.sum())


@pytest.mark.parametrize(("keys", "held", "chosen"), [(3, 2, 3), (3, 1, 2), (2, 2, 1), (3, 3, 4)])
def test_the_errors_of_keys_are_those_of_all_reports_of_all_devices(keys: int, held: int, chosen: int) -> None:
    size, epsilon, rng = 2 * keys + held, 1.3, default_rng(3)
    devices = [  # all that a device may hold, each with a probability
        tuple(2 * key + sign for key, sign in zip(of, signs, strict=True))
        for m in range(held + 1)
        for of in itertools.combinations(range(keys), m)
        for signs in itertools.product((0, 1), repeat=m)
    ]
    padded = [[*each, *(2 * keys + j for j in range(held - len(each)))] for each in devices]
    weights = rng.dirichlet(np.ones(len(devices)))
    law = weights @ np.array([reports_of(size, epsilon, each, chosen) for each in padded])
    channel = SetSelection(size, epsilon, held, chosen).channel
    supports = np.array([[z in each for z in range(size)] for each in itertools.combinations(range(size), chosen)])
    scores = (supports - channel.q) / channel.gain
    r = np.array([sum(w for w, each in zip(weights, padded, strict=True) if z in each) for z in range(size)])
    for one, other in ((1.0, 1.0), (-1.0, 1.0), (-1.5, 0.5)):
        w = np.kron(np.eye(keys), [one, other])
        found = Keys(channel, np.tile([one, other], (keys, 1)), np.arange(keys)).each(r)
        centred = scores[:, : 2 * keys] @ w.T - w @ r[: 2 * keys]
        assert found.variance == pytest.approx(law @ centred**2)
        assert found.third == pytest.approx(law @ centred**3, abs=1e-9)
    # Of sums of keys it is a bound, which is met if nobody holds two.
    alone = Keys(channel, np.ones((keys, 2)), np.arange(keys)).sums(np.ones((keys, 1)), r)
    centred = scores[:, : 2 * keys].sum(axis=1) - r[: 2 * keys].sum()
    assert alone.variance[0] >= law @ centred**2 * (1 - 1e-12)
    assert held > 1 or alone.variance[0] == pytest.approx(law @ centred**2)


def variance_of(channel: Channel, keys: int, r: Floats) -> float:
    """The variance of the share of the first key by one report."""
    return float(Keys(channel, np.ones((keys, 2)), np.arange(keys)).each(r).variance[0])


def window(
    rng: Generator, n: int, share: float, positive: float, keys: int = 12
) -> tuple[LdpProtocol, dict[TableName, Table]]:
    """A window in which users hold key 0 with this share, of which so many have the upper end, and other keys."""
    spec = spec_of(keys=keys, held=2, epsilon=2.0)
    protocol = build_protocol(spec)
    pairs = np.full((n, 2, 2), -1.0)
    pairs[:, 1] = np.stack([rng.integers(2, keys, n), rng.uniform(LOW, HIGH, n)], axis=1)
    first = rng.random(n) < share
    pairs[first, 0] = np.stack([np.zeros(n), np.where(rng.random(n) < positive, HIGH, LOW)], axis=1)[first]
    pairs[~first] = pairs[~first, ::-1]
    cells = protocol.mechanism.statistic(protocol.perturb([Held(pairs, np.full(n, -1))], rng))
    return protocol, {table.name: table for table in protocol.decoder.tables(cells, n, "empirical")}


def test_the_mean_of_a_key_that_is_not_significant_is_withheld() -> None:
    _, tables = window(default_rng(4), 20_000, share=0.3, positive=0.75)
    found, mean = tables[TableName.FOUND].values, tables[TableName.MEAN]
    assert found[:2].tolist() == [1.0, 0.0]  # nobody holds key 1
    assert mean.keys == tuple(str(key) for key in np.flatnonzero(found))
    low, high = ends_of(mean)
    assert low[0] < 20.0 < high[0]
    assert mean.values[0] == pytest.approx(20.0, abs=4 * mean.stderr[0])
    _, few = window(default_rng(5), 30, share=0.3, positive=0.75)
    assert not few[TableName.FOUND].values.any()
    assert TableName.MEAN not in few


def test_the_mean_of_honest_reports_is_within_the_ends_that_allow_for_forged_ones() -> None:
    n, keys, forged = 5000, 4, 50
    decoder = PairDecoder(SetSelection(2 * keys + 2, 4.0, 2, 1), [*map(str, range(keys))], 0.0, 1.0)
    honest = np.array([20, 80, 50, 50, 50, 50, 50, 50, 4000, 600])
    ratio = decoder.means(honest, n, np.array([0]), 0.95).values[0]
    for forged_symbol, other in ((0, 1), (1, 0), (8, 1)):
        cells = honest.copy()
        cells[[forged_symbol, other]] += np.array([1, -1]) * min(forged, honest[other])
        table = decoder.means(cells, n, np.array([0]), 0.95)
        ends, (low, high) = decoder.forged_ends(table, cells, forged), ends_of(table)
        assert ends is not None
        assert ends[0][0] <= ratio <= ends[1][0]
        assert ends[0][0] <= low[0] <= high[0] <= ends[1][0]
    unmoved = decoder.forged_ends(table, cells, 0.0)
    assert unmoved is not None
    assert unmoved[0] == pytest.approx(low)


def test_a_client_that_rounds_to_the_nearest_end_fails() -> None:
    protocol, n = build_protocol(spec_of()), 20_000
    payloads = protocol.perturb([repeated(column_of(spec_of(), {0: HIGH, 3: HIGH}), n)], default_rng(6))
    r = protocol.encoding.law([column_of(spec_of(), {0: 20.0, 3: 12.0})], protocol.mechanism.size)
    assert min(check.p_value for check in checks(protocol.mechanism, r, payloads)) < 1e-9


def test_a_ratio_has_the_ends_of_fieller_if_both_estimates_are_normal() -> None:
    top, bottom, ones, none = np.array([3.0, 0.1]), np.array([10.0, 0.1]), np.ones(2), np.full(2, np.nan)

    def cumulants(v: Floats) -> Cumulants:
        return Cumulants(1 + v**2, 0 * ones, 0 * ones, none, none)

    low, high = ratio_interval(top, bottom, cumulants, 0.95, (-1.0, 1.0))
    assert (low[1], high[1]) == (-1.0, 1.0)  # what is over nothing may be anything
    for end in (low[0], high[0]):
        assert abs(3.0 - end * 10.0) == pytest.approx(1.959964 * math.sqrt(1 + end**2), rel=1e-6)
    wider = ratio_interval(top, bottom, cumulants, 0.95, (-1.0, 1.0), 0.5)
    for end in (wider[0][0], wider[1][0]):
        assert abs(3.0 - end * 10.0) - 0.5 == pytest.approx(1.959964 * math.sqrt(1 + end**2), rel=1e-6)


@pytest.mark.parametrize(("keys", "held", "epsilon"), [(20, 1, 4.0), (20, 3, 1.0), (40, 2, 2.0)])
def test_the_best_size_has_the_least_variance_of_a_key(keys: int, held: int, epsilon: float) -> None:
    size = 2 * keys + held

    def variance(chosen: int) -> float:
        channel, total = SetSelection(size, epsilon, held, chosen).channel, 0.0
        for share in SHARES_OF_KEYS:
            r = np.zeros(size)
            r[:2] = share / 2
            total += variance_of(channel, keys, r)
        return total

    chosen = best_chosen(size, held, epsilon, signed=True)
    assert variance(chosen) <= min(map(variance, range(1, size - held))) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "'0' is no pair; write KEY=NUMBER, with ; between pairs"),
        ("0=1;0=2", "'0=1;0=2' has a key twice; remove one"),
        ("0=x", "'x' is not a number"),
        ("0=31", "'31' is outside of the range -10 to 30"),
        ("6=1", "6 is outside of the domain 0 to 5"),
    ],
)
def test_a_wrong_pair_of_a_table_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace(";", "[;]").replace("(", r"\(")):
        spec_of().variables[""].kind.read(text)
