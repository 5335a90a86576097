"""What whoever sees only the tables is given: the divergence of the clones, its bounds, and the reports that count."""

from fractions import Fraction
from math import comb, exp
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import alternatives, specs
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.inference.shuffle import DELTA, MOST_REPORTS, Clones, forecast_shuffled, shuffled, shuffled_epsilon
from uldp.mechanisms.protocol.mechanism import Mechanism, Privacy, PureMechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec

#: By epsilon, epsilon' of 1,000, 10,000 and 100,000 reports at delta 1e-6, from an independent computation.
AUDIT = {1.0: (0.149, 0.0432, 0.0124), 2.0: (0.397, 0.1144, 0.0332), 4.0: (1.853, 0.4108, 0.1182)}
FIGURES = [(epsilon, n, figure) for epsilon, of in AUDIT.items() for n, figure in zip((1e3, 1e4, 1e5), of, strict=True)]
Law = dict[tuple[int, ...], Fraction]


@pytest.mark.parametrize(("epsilon", "n", "figure"), FIGURES)
def test_the_figures_of_the_audit(epsilon: float, n: float, figure: float) -> None:
    # The least of three digits that is no less.
    assert figure * 0.999 <= shuffled_epsilon(epsilon, int(n)) <= figure * 1.01


def hockey_stick(first: Law, second: Law, factor: Fraction) -> Fraction:
    return sum(
        (max(chance - factor * second.get(at, Fraction(0)), Fraction(0)) for at, chance in first.items()), Fraction(0)
    )


def clones(odds: Fraction, n: int) -> tuple[Law, Law]:
    """The laws of the two numbers under the first value, and under the second; ``odds`` are e^epsilon."""
    p, law = 1 / (odds + 1), dict[tuple[int, ...], Fraction]()
    for c in range(n):
        of_c = comb(n - 1, c) * (2 * p) ** c * (1 - 2 * p) ** (n - 1 - c)
        for a in range(c + 1):
            both = of_c * comb(c, a) / Fraction(2) ** c
            for at, chance in (((a + 1, c - a), odds * p), ((a, c - a + 1), p)):
                law[at] = law.get(at, Fraction(0)) + both * chance
    return law, {at[::-1]: chance for at, chance in law.items()}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 3, 12, 40])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.97])
def test_the_divergence_is_that_of_the_exact_sums(epsilon: float, n: int, part: float) -> None:
    odds, factor = Fraction(exp(epsilon)), Fraction(exp(part * epsilon))
    exact = float(hockey_stick(*clones(odds, n), factor))
    bound = Clones(epsilon, n).hockey_stick(part * epsilon)
    assert exact * (1 - 1e-9) <= bound <= exact * (1 + 1e-5) + 1e-15


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 4.0, 20.0])
def test_more_reports_never_give_more(epsilon: float) -> None:
    numbers = [*range(1, 130, 3), *(round(10 ** (each / 12)) for each in range(25, 109))]
    given = [shuffled_epsilon(epsilon, n) for n in numbers]
    assert given == sorted(given, reverse=True)
    assert given[0] == epsilon or epsilon <= 2 * DELTA
    assert given[-1] == shuffled_epsilon(epsilon, MOST_REPORTS)
    assert all(0 <= each <= epsilon for each in given)


# The reports that count, and the mechanisms that the theorem is about.

SPECS = specs()
ONE_PART = {
    name: keys for name, keys in SPECS.items() if not {"record", "levels"} & {*keys["domain"], *keys["mechanism"]}
}


def serves(name: str) -> tuple[CollectionSpec, Mechanism]:
    spec = build.spec(**SPECS[name])
    return spec, build_protocol(spec).mechanism


def revealed(mechanism: Mechanism, symbol: int, n: int) -> int | None:
    """Of n reports of one symbol, how many count as outside of Y_P."""
    return mechanism.revealed(mechanism.statistic(mechanism.perturb(np.full(n, symbol), np.random.default_rng(symbol))))


@pytest.mark.parametrize("name", [name for name in ONE_PART if serves(name)[1].guarantee.privacy is Privacy.ULDP])
def test_reports_of_a_protected_value_count_and_others_as_they_look(name: str) -> None:
    mechanism, n = serves(name)[1], 2000
    bare = mechanism.bare
    assert isinstance(bare, PureMechanism | NestedResponse)
    if bare.sensitive.sum() < 2:
        assert revealed(mechanism, 0, n) is None
        return
    assert {revealed(mechanism, symbol, n) for symbol in np.flatnonzero(bare.sensitive).tolist()} == {0}
    for symbol in np.flatnonzero(~bare.sensitive).tolist():
        p, found = bare.channel.p[symbol], revealed(mechanism, symbol, n)
        assert found == pytest.approx(n * p, abs=5 * (n * p * (1 - p)) ** 0.5)


@pytest.mark.parametrize("name", ONE_PART)
def test_what_has_no_ldp_for_two_values_has_no_promise(name: str) -> None:
    spec, mechanism = serves(name)
    cells = mechanism.statistic(
        mechanism.perturb(alternatives(mechanism)[0][:1].repeat(500, axis=0), np.random.default_rng(1))
    )
    found = list(shuffled(mechanism, (), cells, 500))
    if mechanism.guarantee.privacy in (Privacy.NONE, Privacy.METRIC) or spec.mechanism.name == "mangat":
        assert found == []
        return
    (promise,), epsilon = found, mechanism.guarantee.epsilon
    assert epsilon is not None
    assert (promise.of, promise.delta) == ((), DELTA)
    assert promise.reports <= 500
    assert promise.epsilon == shuffled_epsilon(epsilon, max(promise.reports, 1))


def of_two_parts(name: str, first: int, second: int, min_reports: int, **keys: Any) -> Estimate:
    """The estimate of so many reports of the first part, and of the last."""
    spec = build.spec(**SPECS[name] | {"limits": {"min_reports": min_reports}} | keys)
    served, n = serve([spec])[spec.key], first + second
    symbols = np.append(np.zeros(first, np.int64), np.full(second, served.mechanism.size - 1))
    cells = served.mechanism.statistic(served.mechanism.perturb(symbols, np.random.default_rng(1)))
    (estimate,) = estimates_of(served, build.pane(cells, accounting=Accounting(n, n)))
    return estimate


def test_levels_have_their_epsilons_and_all_users_the_weakest_promise() -> None:
    estimate = of_two_parts("levels of seeds", 2000, 1000, 1)
    strict, open_ = estimate.shuffle
    assert (strict.epsilon, open_.epsilon) == (shuffled_epsilon(0.9, 2000), shuffled_epsilon(1.0, 1000))
    assert (estimate.shuffled(("strict",)), estimate.shuffled(("open",))) == (strict, open_)
    assert estimate.shuffled() == open_


def test_a_table_that_is_withheld_has_no_promise() -> None:
    estimate = of_two_parts("record of bits", 3000, 700, 1000)
    assert [each.of for each in estimate.shuffle] == [("app",)]
    assert estimate.shuffled(("hours",)) is None


def test_forgers_that_a_spec_assumes_hide_nobody_and_all_may_be_of_one_part() -> None:
    estimate = of_two_parts("record of bits", 3000, 50, 1, assume_forgers=0.02)
    assert [(each.of, each.reports) for each in estimate.shuffle] == [(("app",), 3000 - 61), (("hours",), 0)]
    assert [each.epsilon for each in estimate.shuffle] == [shuffled_epsilon(1.0, 2939), 1.0]


@pytest.mark.parametrize("name", ONE_PART)
def test_a_forecast_is_the_promise_of_reports_of_equally_frequent_symbols(name: str) -> None:
    _, mechanism = serves(name)
    n, rng = 20_000, np.random.default_rng(8)
    ((of, forecast),) = forecast_shuffled(mechanism, (), n)
    # Of a tag with nested zones, which of them a user is in reveals nothing more.
    inputs = mechanism._first_inputs if isinstance(mechanism, NestedResponse) else alternatives(mechanism)[0]
    cells = mechanism.statistic(mechanism.perturb(np.resize(inputs, (n, *inputs.shape[1:])), rng))
    found = list(shuffled(mechanism, (), cells, n))
    assert of == ()
    assert (forecast is None) == (not found)
    for promise in found:
        assert forecast is not None
        assert forecast.reports == pytest.approx(promise.reports, abs=5 * n**0.5)
        assert forecast.epsilon == shuffled_epsilon(mechanism.guarantee.epsilon or 0, max(forecast.reports, 1))


def test_a_forecast_of_a_record_is_for_the_users_who_draw_the_attribute() -> None:
    spec, mechanism = serves("record of bits")
    assert isinstance(mechanism, Strata)
    found = dict(forecast_shuffled(mechanism, [*spec.mechanism.parts], 10_000, forged=100))
    reports = [max(round(10_000 * share) - 100, 0) for share in mechanism.shares.tolist()]
    assert [each and each.reports for each in found.values()] == reports
    assert [*found] == [(name,) for name in spec.mechanism.parts]
