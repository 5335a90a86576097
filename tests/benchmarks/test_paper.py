"""The reproduction of the papers: its formulas, and that its parts run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper import __main__ as paper
from benchmarks.paper import figures, variances
from benchmarks.paper.losses import MECHANISMS, NO_PRIVACY, Effort, expected_variation, losses
from benchmarks.paper.populations import census, manhattan, protocol
from benchmarks.paper.published_variances import PUBLISHED
from uldp.mechanisms.pure import PureDecoder
from uldp.mechanisms.summation import noise_variance


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


def test_a_part_writes_its_table_and_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(census(), users=1000)
    points = [row for epsilon in (1.0, 2.0) for row in losses(few, epsilon, epsilon, Effort(1, 0))]
    monkeypatch.setitem(figures.FIGURES, "5", lambda effort: iter(points))
    paper.write("5", Effort(), tmp_path)
    assert (tmp_path / "figure5.md").read_text(encoding="utf-8").count("\n") == len(points) + 2
    assert (tmp_path / "figure5.png").read_bytes().startswith(b"\x89PNG")
