"""What error bars promise, held against many simulated windows.

Coverage is that of intervals for values drawn i.i.d. Every symbol is given at least some 20 expected supporting reports
(n m_z >= 20): below that the intervals, which are exact, cover more than they must. ``test_pum_intervals.py`` has the
intervals where the background is uncertain.
"""

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.coverage import draw
from tests.mechanisms.estimates import estimate_of
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum, preprocess
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.schemas.arrays import Counts, Floats

#: The laws depend on no version of Python or of a library: once is enough.
pytestmark = pytest.mark.slow

SIZE, N, TRIALS = 24, 40_000, 3000
SENSITIVE = np.arange(SIZE) < 6
EVERYTHING = np.ones(SIZE, dtype=np.bool_)
#: From 0.002 to 0.15 or so, in no order that has to do with X_S.
P = np.random.default_rng(11).permutation(np.geomspace(0.002, 0.16, SIZE))
P /= P.sum()

#: Standard deviation of a coverage that was measured in TRIALS windows and is 95 %.
NOISE = np.sqrt(0.95 * 0.05 / TRIALS)

MECHANISMS: dict[str, PureMechanism] = {
    "rr": RandomizedResponse(EVERYTHING, 2.0),
    "oue": UnaryEncoding(EVERYTHING, 2.0, OUE_THETA),
    "urr": RandomizedResponse(SENSITIVE, 2.0),
    "urap": UnaryEncoding(SENSITIVE, 2.0, sue_theta(2.0)),
}

HOME, WORK = np.random.default_rng(12).dirichlet(np.full(SIZE, 0.5), size=2)
UNKNOWN = np.full(SIZE, np.nan)
PUMS = {
    "known": Pum(SENSITIVE, ("home", "work"), np.array([HOME, WORK]), np.full(2, np.inf)),
    "unknown": Pum(SENSITIVE, ("others",), np.array([UNKNOWN]), np.array([np.nan])),
    "both": Pum(SENSITIVE, ("home", "others"), np.array([HOME, UNKNOWN]), np.array([np.inf, np.nan])),
}


@pytest.fixture(params=PUMS)
def pum(request: pytest.FixtureRequest) -> Pum:
    return PUMS[request.param]


def common(name: str, pum: Pum) -> PureMechanism:
    """The mechanism over Z = X and the bots of ``pum``."""
    sensitive = np.append(SENSITIVE, np.ones(len(pum.tags), dtype=np.bool_))
    if name == "urr":
        return RandomizedResponse(sensitive, 2.0)
    return UnaryEncoding(sensitive, 2.0, sue_theta(2.0))


@pytest.fixture(params=["urr", "urap"])
def common_mechanism(request: pytest.FixtureRequest, pum: Pum) -> PureMechanism:
    return common(request.param, pum)


def windows(channel: Channel, r: Floats, n: int, rng: np.random.Generator) -> Counts:
    """Support counts of TRIALS windows of n users with i.i.d. values, each with enough reports."""
    assert (n * channel.support_probability(r)).min() >= 20
    return draw(channel, r, n, TRIALS, rng)


def intermediate(pum: Pum) -> Floats:
    """A distribution over Z in which each tag hides 15 % of the users."""
    return np.append(P * (1 - 0.15 * len(pum.tags)), np.full(len(pum.tags), 0.15))


def assert_covers_95_percent(intervals: list[tuple[Floats, Floats]], truth: Floats) -> None:
    ends: npt.NDArray[np.float64] = np.array(intervals)
    coverage = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean(axis=0)
    assert 0.93 <= coverage.mean() <= 0.97
    # Each symbol alone, with 4 standard deviations for the noise of the simulation.
    assert coverage.min() >= 0.93 - 4 * NOISE
    assert coverage.max() <= 0.97 + 4 * NOISE


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_intervals_of_r_hat_cover(mechanism: PureMechanism) -> None:
    channel = mechanism.channel
    counts = windows(channel, P, N, np.random.default_rng(13))
    assert_covers_95_percent([estimate_of(channel, window, N).interval(0.95) for window in counts], P)


@pytest.mark.parametrize("name", ["urr", "urap"])
def test_intervals_of_p_hat_cover(name: str) -> None:
    pum = PUMS["known"]
    channel, r = common(name, pum).channel, intermediate(pum)
    counts = windows(channel, r, N, np.random.default_rng(14))
    intervals = [pum_intervals(pum, estimate_of(channel, window, N)).share for window in counts]
    assert_covers_95_percent(intervals, pum.distribution(r))


def test_stderr_of_p_hat_is_its_spread(pum: Pum, common_mechanism: PureMechanism) -> None:
    # n is large enough for the delta method; the mean of each window's own stderr^2 is then the variance.
    channel, r, n = common_mechanism.channel, intermediate(pum), 25 * N
    counts = windows(channel, r, n, np.random.default_rng(15))
    estimates = np.array([pum.distribution(channel.unbiased(window, n)) for window in counts])
    claimed = np.mean([pum.stderr(estimate_of(channel, window, n)) ** 2 for window in counts], axis=0)
    # The logarithm of a sample variance of normal variables has variance 2/TRIALS.
    z = np.log(estimates.var(axis=0) / claimed) / np.sqrt(2 / TRIALS)
    assert np.abs(z).max() < 4


def test_stderr_of_tag_masses_is_their_spread(pum: Pum, common_mechanism: PureMechanism) -> None:
    channel, r = common_mechanism.channel, intermediate(pum)
    counts = windows(channel, r, N, np.random.default_rng(16))
    masses = [estimate_of(channel, window, N).at(slice(pum.size, None)) for window in counts]
    spread = np.var([each.values for each in masses], axis=0)
    claimed = np.mean([each.variance for each in masses], axis=0)
    z = np.log(spread / claimed) / np.sqrt(2 / TRIALS)
    assert np.abs(z).max() < 4


def test_intervals_cover_from_device_to_estimate(pum: Pum, common_mechanism: PureMechanism) -> None:
    # Fewer windows, but every report is drawn: users hide 15 % behind each tag, at places as its background says (or,
    # where there is none, as all others are outside of X_S).
    rng = np.random.default_rng(17)
    n, trials, size = 2000, 150, pum.size
    r = intermediate(pum)
    places = np.vstack([P, pum.bot_distributions(r)])
    share = np.append(1 - 0.15 * len(pum.tags), r[size:])
    behind = rng.choice(np.arange(-1, len(pum.tags)), n * trials, p=share)
    values = np.empty(n * trials, dtype=np.int64)
    for tag, place in enumerate(places, start=-1):
        values[behind == tag] = rng.choice(size, np.count_nonzero(behind == tag), p=place)
    reports = common_mechanism.perturb(preprocess(values, behind, size), rng)
    truth = share @ places
    covered = []
    for first in range(0, n * trials, n):
        counts = common_mechanism.statistic(reports[first : first + n])
        lower, upper = pum_intervals(pum, estimate_of(common_mechanism.channel, counts, n)).share
        covered.append((lower <= truth) & (truth <= upper))
    # Behind a tag without background, the intervals allow for any place.
    assert 0.93 <= np.mean(covered) <= (1 if np.isnan(pum.background).any() else 0.98)
