"""Tags: estimates, covariances and the bound of Theorem 1."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from benchmarks.manhattan import theorem1_terms
from tests.build import pure_mechanism
from tests.mechanisms.estimates import estimate_of
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding, sue_theta
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.collection import CollectionSpec

#: X = {0, ..., 4}, X_S = {0}, and then the bots of home and others.
SENSITIVE = np.array([True, False, False, False, False])
HOME = np.array([0.0, 0.5, 0.5, 0.0, 0.0])
UNKNOWN = np.full(5, np.nan)
INTERMEDIATE = np.append(SENSITIVE, [True, True])


def pum(*background: Floats, strength: float = np.nan) -> Pum:
    tags = ("home", "others", "work")[: len(background)]
    known = np.array(background).reshape(len(background), 5)
    return Pum(SENSITIVE, tags, known, np.full(len(background), strength))


def l1(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).sum())


weights = npst.arrays(np.float64, 7, elements=st.floats(0, 1)).filter(lambda vector: vector.sum() > 0.01)
distributions = weights.map(lambda vector: vector / vector.sum())
conditionals = (
    st.tuples(distributions, distributions)
    .map(lambda rows: np.array(rows)[:, :5])
    .filter(lambda rows: bool((rows.sum(axis=1) > 0.01).all()))
    .map(lambda rows: rows / rows.sum(axis=1, keepdims=True))
)


def test_equation_22_by_hand() -> None:
    r_hat = np.array([0.1, 0.2, 0.1, 0.2, 0.0, 0.3, 0.1])
    # pi-hat of others is r-hat over X_N = {1, 2, 3, 4}: (0.2, 0.1, 0.2, 0) / 0.5.
    expected = [0.1, 0.2 + 0.15 + 0.04, 0.1 + 0.15 + 0.02, 0.2 + 0.04, 0.0]
    assert pum(HOME, UNKNOWN).distribution(r_hat) == pytest.approx(expected)


def test_tags_without_background_scale_what_is_not_sensitive() -> None:
    # The paper says that r-hat is normalized over X_N to one. That holds if r-hat has nothing on X_S; in general X_S
    # keeps its part, and X_N is scaled to the rest.
    r_hat = np.array([0.0, 0.2, 0.1, 0.2, 0.0, 0.3, 0.2])
    both = pum(UNKNOWN, UNKNOWN)
    assert both.distribution(r_hat) == pytest.approx(np.array([0, 0.2, 0.1, 0.2, 0]) / 0.5)
    r_hat = np.array([0.4, 0.1, 0.05, 0.1, 0.0, 0.15, 0.2])
    assert both.distribution(r_hat) == pytest.approx(np.array([0.4, 0.24, 0.12, 0.24, 0]))


def test_tags_without_background_fall_back_to_uniform() -> None:
    r_hat = np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.2, 0.4])
    assert pum(HOME, UNKNOWN).distribution(r_hat) == pytest.approx([0.4, 0.2, 0.2, 0.1, 0.1])


@pytest.mark.parametrize("background", [(HOME, UNKNOWN), (UNKNOWN, UNKNOWN), (HOME, HOME[::-1])])
@given(r_hat=distributions)
def test_from_simplex_to_simplex(background: tuple[Floats, ...], r_hat: Floats) -> None:
    p_hat = pum(*background).distribution(r_hat)
    assert (p_hat >= 0).all()
    assert p_hat.sum() == pytest.approx(1)


@given(
    r_hat=npst.arrays(np.float64, 7, elements=st.floats(-1, 1)), r=distributions, pi_hat=conditionals, pi=conditionals
)
def test_theorem_1(r_hat: Floats, r: Floats, pi_hat: Floats, pi: Floats) -> None:
    p_hat, p = pum(*pi_hat).distribution(r_hat), pum(*pi).distribution(r)
    first, second = theorem1_terms(r_hat, r, pi_hat, pi)
    assert first == pytest.approx(l1(r_hat, r))
    assert l1(p_hat, p) <= first + second + 1e-9
    assert second <= pum(*pi_hat).bound(r_hat) + 1e-9


def test_a_negative_mass_costs_nothing() -> None:
    # The bound without the maximum, 2 (0.3 - 0.2), would be below the 0.6 that the wrong background of home costs.
    at_1, at_2, at_3 = np.eye(5)[[1, 2, 3]]
    r_hat = np.array([0.2, 0, 0, 0.7, 0, 0.3, -0.2])
    r = np.array([0.2, 0, 0, 0.5, 0, 0.3, 0.0])
    p_hat, p = pum(at_2, at_3).distribution(r_hat), pum(at_1, at_3).distribution(r)
    first, second = theorem1_terms(r_hat, r, np.array([at_2, at_3]), np.array([at_1, at_3]))
    assert pum(at_2, at_3).bound(r_hat) == pytest.approx(0.6)
    assert second == pytest.approx(0.6)
    assert l1(p_hat, p) == pytest.approx(0.6)
    assert first + second >= 0.6


MECHANISMS: dict[str, PureMechanism] = {
    "urr": RandomizedResponse(INTERMEDIATE, 2.0),
    "urap": UnaryEncoding(INTERMEDIATE, 2.0, sue_theta(2.0)),
}
R = np.array([0.1, 0.2, 0.15, 0.1, 0.05, 0.25, 0.15])
BACKGROUNDS = {"known": (HOME, HOME[::-1]), "unknown": (UNKNOWN, UNKNOWN), "both": (HOME, UNKNOWN)}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> PureMechanism:
    return MECHANISMS[request.param]


def expected_counts(channel: Channel, r: Floats, n: int) -> Counts:
    return np.rint(n * channel.support_probability(r)).astype(np.int64)


@pytest.mark.parametrize("background", BACKGROUNDS.values(), ids=BACKGROUNDS)
def test_stderr_is_the_delta_method_with_whole_matrices(
    mechanism: PureMechanism, background: tuple[Floats, ...]
) -> None:
    model, n = pum(*background), 10**12
    channel = mechanism.channel
    step = 1e-6
    jacobian = np.array(
        [(model.distribution(R + e) - model.distribution(R - e)) / (2 * step) for e in step * np.eye(7)]
    ).T
    expected = np.sqrt(np.diag(jacobian @ channel.covariance(R)(jacobian.T)) / n)
    assert model.stderr(estimate_of(channel, expected_counts(channel, R, n), n)) == pytest.approx(expected, rel=1e-5)


def test_intervals_do_not_collapse_where_nothing_was_seen() -> None:
    channel = MECHANISMS["urr"].channel
    counts = np.array([50, 200, 150, 0, 0, 350, 250])
    model = pum(HOME, UNKNOWN)
    assert model.stderr(estimate_of(channel, counts, 1000))[4] == 0
    lower, upper = pum_intervals(model, estimate_of(channel, counts, 1000)).visible
    assert lower[4] < upper[4]
    assert upper[4] > 1 / 1000


def test_values_that_no_tag_reaches_have_the_interval_of_their_channel(mechanism: PureMechanism) -> None:
    # Home lies at 1 and 2 alone, for certain, so p-hat is r-hat at 0, 3 and 4.
    model, channel = pum(HOME, HOME, strength=np.inf), mechanism.channel
    counts = np.array([30, 40, 20, 10, 0, 60, 40])
    for ours, theirs in zip(
        pum_intervals(model, estimate_of(channel, counts, 200)).share,
        estimate_of(channel, counts, 200).interval(0.95),
        strict=True,
    ):
        assert ours[[0, 3, 4]] == pytest.approx(theirs[[0, 3, 4]], abs=1e-12)


@pytest.mark.parametrize(
    "plain", [RandomizedResponse(SENSITIVE, 2.0), UnaryEncoding(SENSITIVE, 2.0, sue_theta(2.0))], ids=["urr", "urap"]
)
def test_without_tags_nothing_is_added(plain: PureMechanism) -> None:
    model, channel, n = pum(), plain.channel, 100
    counts = np.array([40, 30, 20, 10, 0])
    r_hat = channel.unbiased(counts, n)
    np.testing.assert_array_equal(model.distribution(r_hat), r_hat)
    np.testing.assert_allclose(model.stderr(estimate_of(channel, counts, n)), np.sqrt(channel.variance(r_hat, n)))
    for ends in pum_intervals(model, estimate_of(channel, counts, n)):
        np.testing.assert_allclose(np.array(ends), np.array(estimate_of(channel, counts, n).interval(0.95)), atol=1e-12)
    assert model.bound(r_hat) == 0


def test_of_the_variable_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "home.csv").write_text("value,weight\n1,3\n2,3\n")
    spec = CollectionSpec.parse(
        {
            "collection": "places",
            "version": 1,
            "domain": {"size": 5},
            "sensitive": [0],
            "mechanism": {"name": "urr", "epsilon": 2.0},
            "tags": [{"name": "home", "background": "home.csv"}, {"name": "others"}],
            "window": {"size": "1h"},
        },
        base=tmp_path,
    )
    # Whole weights, 6 in all, are worth 1.5 draws.
    expected = Pum(SENSITIVE, ("home", "others"), np.array([HOME, UNKNOWN]), np.array([1.5, np.nan]))
    model = Pum.of(spec.variables[""])
    assert model.tags == expected.tags
    assert model.distribution(R) == pytest.approx(expected.distribution(R))
    counts = expected_counts(MECHANISMS["urr"].channel, R, 1000)
    assert model.stderr(estimate_of(pure_mechanism(spec).channel, counts, 1000)) == pytest.approx(
        expected.stderr(estimate_of(MECHANISMS["urr"].channel, counts, 1000))
    )


def one_tag(background: Floats, strength: list[float]) -> Pum:
    return Pum(SENSITIVE, ("home",), background, np.array(strength))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: one_tag(np.zeros((1, 5)), [np.nan]), "distribution"),
        (lambda: one_tag(np.array([[1.5, -0.5, 0, 0, 0]]), [np.nan]), "distribution"),
        (lambda: one_tag(np.array([[np.nan, 1, 0, 0, 0]]), [np.nan]), "distribution"),
        (lambda: one_tag(np.ones((1, 4)) / 4, [np.nan]), "background has shape"),
        (lambda: one_tag(HOME[np.newaxis], []), r"strength has shape \(0,\), but there are 1 tags"),
        (lambda: one_tag(HOME[np.newaxis], [0.0]), "above 0"),
        (lambda: pum(UNKNOWN, strength=5.0), "without background has no strength"),
        (lambda: Pum(SENSITIVE | True, ("others",), UNKNOWN[np.newaxis], np.full(1, np.nan)), r"\(others\)"),
        (lambda: pum(HOME, UNKNOWN).distribution(np.full(5, 0.2)), "5 values and 2 tags"),
    ],
)
def test_what_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
