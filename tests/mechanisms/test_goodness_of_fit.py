"""Tests of a client's reports: a right client passes at the stated level, and a wrong one is found."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from tests.mechanisms.protocols import examples, of_one_device
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.inference.goodness_of_fit import binomial, checks, chi_square
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Floats, Payloads
from uldp.schemas.specs.kinds import Strings, StringSets

EXAMPLES = examples()
#: The examples with strings, of which no distribution over all symbols has room; ``verify`` refuses their reports.
OF_STRINGS = [
    name
    for name, example in EXAMPLES.items()
    if any(isinstance(variable.kind, Strings | StringSets) for variable in example.spec.variables.values())
]
TESTED = [name for name in EXAMPLES if name not in OF_STRINGS]
N = 2000
ALL = np.ones(8, dtype=np.bool_)


def of_one(name: str, seed: int) -> tuple[LdpProtocol, list[Held], Floats]:
    """What one device of an example holds, and the distribution of its symbol."""
    example, rng = EXAMPLES[name], default_rng(seed)
    held = of_one_device(example, rng)
    return example.protocol, held, example.protocol.encoding.law(held, example.protocol.mechanism.size)


def repeated(held: list[Held], n: int) -> list[Held]:
    return [Held(of.values[np.zeros(n, np.int64)], np.repeat(of.tags, n)) for of in held]


def reports(protocol: LdpProtocol, held: list[Held], n: int, seed: int) -> Payloads:
    return protocol.perturb(repeated(held, n), default_rng(seed))


def p_value(mechanism: Mechanism, r: Floats, payloads: Payloads) -> float:
    """The p-value of all checks together."""
    found = list(checks(mechanism, r, payloads))
    return min(1.0, len(found) * min(check.p_value for check in found))


@pytest.mark.parametrize("name", TESTED)
def test_a_right_client_passes(name: str) -> None:
    for seed in range(3):
        protocol, held, r = of_one(name, seed)
        assert p_value(protocol.mechanism, r, reports(protocol, held, N, seed)) > 1e-4


@pytest.mark.parametrize("name", TESTED)
def test_the_distribution_of_a_symbol_is_that_of_its_encoding(name: str) -> None:
    protocol, held, r = of_one(name, 2)
    n = 20_000
    symbols, mechanism = protocol.encoding.encode(repeated(held, n), default_rng(1)), protocol.mechanism
    if isinstance(mechanism, Strata):
        # Where a part takes one symbol, and another one several, a row repeats it.
        helds = [part.held for part in mechanism.parts]
        assert r.sum() == pytest.approx(mechanism.shares @ helds)
        r = r * np.repeat(mechanism.held / np.array(helds), [part.size for part in mechanism.parts])
    else:
        assert r.sum() == pytest.approx(mechanism.held)
    assert chi_square("", "", np.bincount(symbols.ravel(), minlength=len(r)), r / r.sum()).p_value > 1e-3


def test_chi_square_is_pearsons_of_bins_with_five_expected_or_more() -> None:
    counts, law = np.array([30, 2, 5, 21, 40, 2]), np.array([0.25, 0.04, 0.05, 0.25, 0.38, 0.03])
    found = chi_square("", "", counts, law)
    joined = stats.chisquare([30, 7, 21, 42], 100 * np.array([0.25, 0.09, 0.25, 0.41]))
    assert found.p_value == pytest.approx(joined.pvalue)
    assert found.statistic == f"chi-square {joined.statistic:.1f}, degrees of freedom 3"


def test_the_first_outcome_that_cannot_come_is_named() -> None:
    found = chi_square("", "symbol", np.array([90, 2, 8, 3]), np.array([0.9, 0.0, 0.1, 0.0]))
    assert (found.statistic, found.p_value) == ("2 that cannot come", 0.0)
    assert found.finding == "symbol 1 came 2 times, and cannot come"


@pytest.mark.parametrize("count", [0, 3, 9, 10, 17, 40])
def test_a_count_is_tested_by_both_tails_of_its_binomial(count: int) -> None:
    law = stats.binom(40, 0.25)
    tail = min(law.cdf(count), law.sf(count - 1))
    assert binomial("", str, np.array([count]), 40, np.array([0.25])).p_value == pytest.approx(min(1.0, 2 * tail))


def symbol_alone(mechanism: Mechanism, symbol: int) -> Floats:
    r = np.zeros(mechanism.size)
    r[symbol] = 1
    return r


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rr", "oue", "ss", "olh", "duchi", "record of designs"])
def test_the_level_is_that_of_the_definition(name: str) -> None:
    """In 200 runs, 10 have a p-value below 5 %, or fewer because p-values are discrete; 22 in one of 10,000."""
    protocol, held, r = of_one(name, 2)
    small = [p_value(protocol.mechanism, r, reports(protocol, held, 300, seed)) for seed in range(200)]
    assert np.count_nonzero(np.array(small) < 0.05) < 22
    assert min(small) > 1e-6


# Clients that are wrong, each with what it sends for one symbol: 3 of 8.
SYMBOL = 3
RR, OUE, OLH = RandomizedResponse(ALL, 1.0), UnaryEncoding(ALL, 1.0, 0.5), LocalHashing(8, 1.0, 4)
SS = SubsetSelection(8, 1.0)


def sent(mechanism: Mechanism, seed: int = 5) -> Payloads:
    return mechanism.perturb(np.full(N, SYMBOL), default_rng(seed))


def with_modulo() -> Payloads:
    """Noise from the remainder of a byte by 7, and not of a number below 8."""
    rng = default_rng(5)
    return np.where(rng.random(N) < RR.noise_probability, rng.integers(0, 256, N) % 7, SYMBOL).astype(np.uint32)


def with_one_draw() -> Payloads:
    """All bits from one draw: each has its probability."""
    rng = default_rng(5)
    noise = rng.random((N, 1)) < np.where(np.arange(8) == SYMBOL, OUE.channel.p, OUE.channel.q)
    return np.packbits(noise, axis=1)


def reversed_bits(payloads: Payloads) -> Payloads:
    return np.packbits(np.unpackbits(payloads.astype(np.uint8), axis=1), axis=1, bitorder="little")


def with_one_seed() -> Payloads:
    payloads = sent(OLH).copy()
    payloads[:, :4] = payloads[0, :4]
    return payloads


WRONG: dict[str, tuple[Mechanism, Any]] = {
    "a wrong epsilon": (RR, sent(RandomizedResponse(ALL, 1.5))),
    "noise that is never the true symbol": (RR, np.where(sent(RR) == SYMBOL, sent(RR, 6), sent(RR)).astype(np.uint32)),
    "noise from a remainder": (RR, with_modulo()),
    "the next symbol": (RR, (sent(RR) + np.uint32(1)) % np.uint32(8)),
    "always the truth": (RR, np.full(N, SYMBOL, dtype=np.uint32)),
    "a theta of another mechanism": (OUE, sent(UnaryEncoding(ALL, 1.0, 0.6))),
    "the least significant bit first": (OUE, reversed_bits(sent(OUE))),
    "one draw for all bits": (OUE, with_one_draw()),
    "the bits of one report again": (OUE, np.repeat(sent(OUE)[:1], N, axis=0)),
    "one seed for all": (OLH, with_one_seed()),
    "a seed of 16 bits in big-endian, and a wrong hash": (OLH, sent(OLH)[:, [3, 2, 1, 0, 4, 5]]),
    "a set that begins with the truth too often": (SS, sent(SubsetSelection(8, 1.3, SS.chosen))),
}


def test_a_mechanism_without_a_known_law_is_held_against_its_own_reports() -> None:
    r = np.full(8, 1 / 8)  # of several symbols, supports have no binomial law
    rng = default_rng(1)
    (check,) = checks(OLH, r, OLH.perturb(rng.integers(0, 8, N), rng))
    assert (check.name, check.p_value > 1e-3) == ("cells", True)
    (check,) = checks(OLH, r, sent(OLH))
    assert check.p_value < 1e-4
    # The means of 200 groups differ by Student's law with 199 degrees of freedom; z is printed to two digits.
    z = abs(float(re.findall(r"differences (\S+)", check.statistic)[0]))
    most, least = 16 * stats.t(199).sf([z - 0.005, z + 0.005])
    assert least <= check.p_value <= most


def test_a_wrong_part_of_a_record_is_found() -> None:
    protocol, held, r = of_one("record of symbols", 2)
    found = [check.name for check in checks(protocol.mechanism, r, reports(protocol, held, N, 3))]
    assert {name.partition(" of ")[2] for name in found if " of " in name} == {"attribute 0", "attribute 1"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_client_is_found(name: str) -> None:
    mechanism, payloads = WRONG[name]
    assert p_value(mechanism, symbol_alone(mechanism, SYMBOL), payloads) < 1e-4
