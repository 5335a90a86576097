"""The fit to counts of sets and blocks: by a matrix, by products, and with one symbol for all others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.estimators import pair_projection
from uldp.mechanisms.estimators.pair_projection import join, nearest_given_pairs
from uldp.mechanisms.estimators.projection import nearest_fit
from uldp.mechanisms.inference.plausibility import fit_counts
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats

K, V, N = 30, 8, 20_000
NAMES = ["uhr", "ubd", "uss"]


def parts(name: str, sensitive: int = V) -> tuple[PureMechanism, PureDecoder]:
    spec = build.spec(domain={"size": K}, sensitive=[*range(sensitive)], mechanism={"name": name, "epsilon": 1.0})
    protocol = build_protocol(spec)
    assert isinstance(protocol.mechanism, PureMechanism)
    assert isinstance(protocol.decoder, PureDecoder)
    return protocol.mechanism, protocol.decoder


def windows(name: str) -> list[tuple[Counts, int]]:
    """Honest windows, and windows in which a fifth of the reports are one report."""
    mechanism, decoder = parts(name)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(5):
        payloads = mechanism.perturb(rng.choice(K, N, p=rng.dirichlet(np.full(K, 0.3))), rng)
        forged = np.concatenate([payloads, np.repeat(payloads[:1], N // 5, axis=0)])
        found += [(decoder.supports(mechanism.statistic(each)), len(each)) for each in (payloads, forged)]
    return found


@pytest.fixture
def to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all iterations go on until nothing moves."""
    for name, value in {"_STEPS": 200, "_STILL": 1e-10, "_MOST_ITERATIONS": 1000, "_TOLERANCE": 1e-13}.items():
        monkeypatch.setattr(pair_projection, name, value)


@pytest.mark.parametrize("name", NAMES)
def test_the_joined_channel_is_that_of_the_sums(name: str) -> None:
    channel, r = parts(name)[1].channel, np.random.default_rng(2).dirichlet(np.ones(K))
    sums = np.zeros((V + 1, K))
    sums[np.minimum(np.arange(K), V), np.arange(K)] = 1
    assert join(channel, r) == pytest.approx(sums @ r)
    joined = channel.joined.covariance(join(channel, r))(np.eye(V + 1))
    assert joined == pytest.approx(sums @ channel.covariance(r)(sums.T), abs=1e-11)


@pytest.mark.usefixtures("to_the_end")
@pytest.mark.parametrize("name", NAMES)
def test_one_symbol_stands_for_all_that_are_not_sensitive(name: str) -> None:
    channel = parts(name)[1].channel
    for counts, n in windows(name):
        nearest, distance = nearest_given_pairs(channel, counts, n)
        fit = nearest_fit(channel, counts, n)
        assert fit.r == pytest.approx(nearest, abs=1e-9)
        assert fit.distance == pytest.approx(distance, rel=1e-9)


@pytest.mark.usefixtures("to_the_end")
@pytest.mark.parametrize("name", NAMES)
def test_a_matrix_gives_the_fit_of_products(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = parts(name)[1].channel
    by_matrix = [nearest_fit(channel, *window) for window in windows(name)]
    monkeypatch.setattr(pair_projection, "_MOST_WRITTEN", 0)
    for window, (r, distance) in zip(windows(name), by_matrix, strict=True):
        fit = nearest_fit(channel, *window)
        assert fit.r == pytest.approx(r, abs=1e-9)
        assert fit.distance == pytest.approx(distance, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("forged", [0, 60])
def test_the_fit_of_many_symbols_meets_its_conditions_by_a_dense_inverse(name: str, forged: int) -> None:
    # The covariance is built from the law of all payloads, and inverted, so no product of the code is used.
    size, n, rng = 300, 30_000, np.random.default_rng(4)
    spec = build.spec(domain={"size": size}, sensitive=[*range(150)], mechanism={"name": name, "epsilon": 1.0})
    protocol = build_protocol(spec)
    mechanism, decoder = protocol.mechanism, protocol.decoder
    assert isinstance(decoder, PureDecoder)
    falling = 1 / np.arange(1, size + 1)
    payloads = mechanism.perturb(rng.choice(size, n, p=falling / falling.sum()), rng)
    payloads = np.concatenate([payloads, np.repeat(payloads[:1], forged, axis=0)])
    n += forged
    counts = decoder.supports(mechanism.statistic(payloads))
    r, distance = nearest_fit(decoder.channel, counts, n)
    seen = (decoder.channel.q > 0) | (counts > 0)
    covariance = _dense_covariance(decoder.channel, r)[np.ix_(seen, seen)] / n
    residuals = (decoder.channel.unbiased(counts, n) - r)[seen]
    w = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ residuals
    assert distance == pytest.approx(residuals @ w, rel=1e-4)
    # The multipliers are one number where r is positive, and no larger than it where r is 0.
    held, scale = r[seen] > 0, np.abs(w).max()
    level = np.median(w[held])
    assert w[held] == pytest.approx(np.full(held.sum(), level), abs=2e-2 * scale)
    assert (w[~held] <= level + 2e-2 * scale).all()


def _dense_covariance(channel: Channel, r: Floats) -> Floats:
    """n Cov[r-hat] from the supports of each cell and its probability, or from the probabilities of two symbols."""
    if channel.blocks is None:
        return channel.covariance(r)(np.eye(channel.size))
    supports, law = np.rint(channel.blocks.supported(np.eye(channel.size))), channel.blocks.law(r)
    estimates = np.array([channel.unbiased(row.astype(np.int64), 1) for row in supports])
    centred = estimates - law @ estimates
    dense: Floats = centred.T @ (law[:, np.newaxis] * centred)
    return dense


@pytest.mark.parametrize("name", ["uhr", "ubd"])
@pytest.mark.parametrize("sensitive", [1, 2, 7, K])
@given(data=st.data())
def test_any_cells_have_a_fit(name: str, sensitive: int, data: st.DataObject) -> None:
    mechanism, decoder = parts(name, sensitive)
    few = st.sampled_from([0, 1, 5, 1000])
    cells = data.draw(npst.arrays(np.int64, mechanism.statistic_size, elements=few))
    cells[0] += 1000
    fit = fit_counts(decoder.channel, decoder.supports(cells), int(cells.sum()))
    assert fit is None or 0 <= fit.p_value <= 1
