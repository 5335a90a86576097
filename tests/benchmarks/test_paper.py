"""The reproduction of the papers: its formulas, and that its parts run."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.paper import block_designs, frequent, variances
from benchmarks.paper.losses import MECHANISMS, NO_PRIVACY, Effort, expected_variation, losses
from benchmarks.paper.populations import Population, census, manhattan, protocol
from benchmarks.paper.published_variances import PUBLISHED
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.families.summation.randomizer import noise_variance


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 6.0])
@pytest.mark.parametrize("name", ["RR", "RAP", "uRR", "uRAP"])
def test_equations_12_and_17_are_the_expected_loss_of_the_channel(name: str, epsilon: float) -> None:
    decoder = protocol(manhattan(), {"name": MECHANISMS[name]}, epsilon).decoder
    assert isinstance(decoder, PureDecoder)
    expected = decoder.channel.expected_l1(manhattan().p, manhattan().users) / 2
    assert expected_variation(name, manhattan(), epsilon) == pytest.approx(expected, rel=1e-9)


def test_the_measured_loss_is_the_expected_one() -> None:
    measured = {row.mechanism: row for row in losses(census(), 1.0, 1.0, Effort(6, 0)) if row.estimator == "emp"}
    for name in ("RR", "RAP", "uRR", "uRAP"):
        assert measured[name].variation == pytest.approx(measured[name].expected, rel=0.08)
    assert measured[NO_PRIVACY].variation < measured["uBD"].variation < measured["uRAP"].variation


def test_the_maximum_of_reports_is_better_than_the_unbiased_estimate() -> None:
    few = replace(census(), users=20_000)
    rows = {(row.mechanism, row.estimator): row for row in losses(few, 4.0, 4.0, Effort(2, 1))}
    for name in ("RR", "RAP", "uRR", "uRAP"):
        assert rows[name, "EM"].variation < rows[name, "emp"].variation


def test_the_variance_of_reports_is_equation_2() -> None:
    sweeps = {"d": {64.0: variances.Setting(size=64, users=2000, epsilon=2.0)}}
    measured = list(variances.measure(Effort(30), sweeps))
    assert {row.protocol for row in measured} == set(variances.PROTOCOLS)
    assert max(abs(row.z) for row in measured) < 4


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_variances_are_those_of_the_channels_for_a_value_that_nobody_holds(name: str, epsilon: float) -> None:
    built = protocol(variances.zipf(variances.Setting(size=64)), variances.PROTOCOLS[name], epsilon)
    variance = PUBLISHED[name](epsilon, 64)
    if isinstance(built.decoder, PureDecoder):
        # The number of buckets is an integer.
        channel = built.decoder.channel.variance_given_values(np.zeros(64), 1)
        assert channel == pytest.approx(variance, rel=0.03 if name == "OLH" else 1e-6)
    else:
        # Geometric noise has less variance than Laplace's.
        assert 0.7 < noise_variance(epsilon) / variance < 1


@pytest.mark.parametrize(("size", "v", "epsilon"), [(300, 100, 1.0), (300, 30, 4.0), (400, 76, 5.0), (300, 10, 3.0)])
def test_the_error_of_the_papers_scheme_is_its_limit_in_the_worst_case(size: int, v: int, epsilon: float) -> None:
    scheme = block_designs.worst_case(size, v, epsilon)
    assert scheme.gap < 1e-6
    sensitive = np.arange(size) < v
    worst = np.where(sensitive, scheme.alpha / v, (1 - scheme.alpha) / (size - v))
    # The limit is of Fisher's information, and the error of the variances of a linear estimate.
    assert block_designs.squared_error(worst, sensitive, epsilon, scheme) == pytest.approx(scheme.limit, rel=1e-9)


def test_with_blocks_of_one_size_the_papers_scheme_is_uss() -> None:
    scheme = block_designs.worst_case(400, 76, 2.0)
    (w,) = np.flatnonzero(scheme.blocks) + 1
    decoder = protocol(census(), {"name": "uss", "w": int(w)}, 2.0).decoder
    assert isinstance(decoder, PureDecoder)
    found = block_designs.squared_error(census().p, census().sensitive, 2.0, scheme)
    assert found == pytest.approx(decoder.channel.variance(census().p, 1).sum(), rel=1e-9)


@pytest.mark.parametrize(
    "population", tuple(block_designs.populations()), ids=lambda each: f"{each.name}, {each.sensitive.sum()}"
)
def test_ubd_is_nearly_as_accurate_as_that_of_its_paper(population: Population) -> None:
    rows = list(block_designs.measure(Effort(quick=True), [population]))
    assert [row.epsilon for row in rows] == [3.0, 4.0]  # where most depends on w
    at_most = 1.48 if len(population.p) == block_designs.SIZE else 1.02
    assert all(row.best <= row.ours <= at_most * row.paper for row in rows)


def test_the_values_above_a_threshold_are_as_many_as_normal_errors_make_probable() -> None:
    rows = list(frequent.measure(Effort(40), frequent.population(500, 1_000_000)))
    assert len(rows) == len(frequent.NAMES) * len(frequent.EPSILONS) * len(frequent.THRESHOLDS)
    for row in rows:
        for found, expected in ((row.true, row.expected_true), (row.false, row.expected_false)):
            # A sum of independent events has less variance than its mean; estimates of counts may depend on each other.
            assert abs(found - expected) < 4 * np.sqrt((expected + 0.1) / 40), row
