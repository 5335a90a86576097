"""Sets of strings that nobody lists: the law of reports, draws, a search, and what is refused."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.encodings.set_encoding import padded
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding
from uldp.mechanisms.families.local_hashing.cohorts import CohortSetHashing
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.strings.cohorts import STRING_SYMBOLS, string_symbol
from uldp.schemas.arrays import Counts, Mask
from uldp.schemas.table import Table, TableName

LONGEST = 12
WORDS = [f"w{number}" for number in range(30)]


def keys_of(
    name: str = "set-olh", *, at_most: int = 3, strings: dict[str, Any] | None = None, **mechanism: Any
) -> dict[str, Any]:
    of = {"strings": {"longest": LONGEST, **(strings or {})}}
    return {"domain": {"set": {"of": of, "at_most": at_most}}, "mechanism": {"name": name, "epsilon": 2.0, **mechanism}}


def protocol_of(candidates: Sequence[str] = (), **keys: Any) -> LdpProtocol:
    return build_protocol(build.spec(**keys_of(**keys), candidates=[*candidates]))


# The law.


@pytest.mark.parametrize("strings", [(), ("w1",), ("w1", "w2", "w3")])
def test_reports_follow_the_law(strings: tuple[str, ...]) -> None:
    protocol, n = protocol_of(cohorts=4, buckets=5), 100_000
    mechanism = protocol.mechanism
    assert isinstance(mechanism, CohortSetHashing)
    held = Held(np.array([[*strings, *[None] * (3 - len(strings))]] * n, dtype=np.object_), np.full(n, -1))
    payloads = protocol.perturb([held], default_rng(2))
    symbols = protocol.encoding.of_one([Held(held.values[:1], held.tags[:1])])
    found = list(mechanism.string_checks(symbols, payloads))
    assert min(check.p_value for check in found) > 1e-3
    others = padded(np.array([[string_symbol("other", LONGEST), -1, -1]]), STRING_SYMBOLS)[0]
    assert min(check.p_value for check in mechanism.string_checks(others, payloads)) < 1e-9


# The device.


def test_strings_with_one_prefix_are_one_and_a_larger_set_is_cut_uniformly() -> None:
    protocol, n = protocol_of(at_most=2, cohorts=16), 40_000
    own = np.array([string_symbol(word, LONGEST) for word in WORDS[:5]])
    sets = np.array([WORDS[:5]] * n, dtype=np.object_)
    symbols = protocol.encoding.encode([Held(sets, np.full(n, -1))], default_rng(3))
    assert (symbols[:, 0] < symbols[:, 1]).all()
    counts = (symbols[:, :, np.newaxis] == own).any(axis=1).sum(axis=0)
    assert np.abs(counts - 0.4 * n).max() < 5 * math.sqrt(n * 0.24)
    of_prefixes = protocol_of(name="prefixes", at_most=2, strings={"alphabet": "a-z0-9"}, depth=2, cohorts=16)
    encoding, pair = of_prefixes.encoding, Held(np.array([["w1", "w2"]], dtype=np.object_), np.full(1, -1))
    assert isinstance(encoding, StrataEncoding)
    of_parts = encoding.of_each_part([pair])
    assert [(part < STRING_SYMBOLS).sum() for part in of_parts] == [1, 2, 2]


# Estimates.


def held_by_chance(rng: Generator, n: int, shares: Sequence[float], most: int) -> tuple[Counts, Mask]:
    """Return the symbols of n users who hold words independently, with larger sets cut, and who reports which word."""
    there = rng.random((n, len(shares))) < np.array(shares)
    order = np.argsort(np.where(there, rng.random(there.shape), 2.0), axis=1)[:, :most]
    kept = np.take_along_axis(there, order, axis=1)
    symbols = np.array([string_symbol(word, LONGEST) for word in WORDS[: len(shares)]])
    reported = np.zeros_like(there)
    np.put_along_axis(reported, order, kept, axis=1)
    return padded(np.where(kept, symbols[order], -1), STRING_SYMBOLS), reported


def table_of(tables: Sequence[Table], name: TableName) -> Table:
    return next(table for table in tables if table.name is name)


def test_auto_has_shares_from_0_to_1_that_sum_to_no_more_than_a_device_holds() -> None:
    protocol, n = protocol_of(WORDS, at_most=2, epsilon=0.5), 2_000
    rng = default_rng(7)
    symbols, _ = held_by_chance(rng, n, [0.9, 0.9, *[0.0] * 28], 2)
    mechanism = protocol.mechanism
    share = table_of(
        protocol.decoder.tables(mechanism.statistic(mechanism.perturb(symbols, rng)), n, "auto"), TableName.SHARE
    )
    assert share.values.min() >= 0
    assert share.values.max() <= 1
    assert share.values.sum() == pytest.approx(2)
    assert share.unbiased is not None
    assert share.unbiased.sum() != pytest.approx(2)


# A search.


SPELLED = {"alphabet": "a-d"}


def search(protocol: LdpProtocol, sets: Sequence[Sequence[str]], rng: Generator) -> list[str]:
    """Return the strings that are found in a window."""
    n, most = len(sets), max(map(len, sets))
    rows = np.array([[*each, *[None] * (most - len(each))] for each in sets], dtype=np.object_)
    cells = protocol.mechanism.statistic(protocol.perturb([Held(rows, np.full(n, -1))], rng))
    tables = protocol.decoder.tables(cells, n, "auto")
    if len(tables) == 1:
        return []
    table = table_of(tables, TableName.FOUND)
    return [str(key) for key, value in zip(table.keys or (), table.values, strict=True) if value]


def test_a_search_finds_the_strings_of_sets() -> None:
    protocol = protocol_of(name="prefixes", strings=SPELLED, epsilon=4.0, cohorts=256, step=2, depth=3)
    sets = [["abcd", "ab", "dada"], ["abcd", "cacaca"], [], ["dada", "abcd"], ["bbbb"]] * 4_000
    assert {*search(protocol, sets, default_rng(1))} == {"abcd", "ab", "dada", "cacaca", "bbbb"}
