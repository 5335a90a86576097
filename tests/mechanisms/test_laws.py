"""The laws of every protocol: how payloads become cells, and what is estimated from them."""

from functools import cache
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, default_rng

from tests.mechanisms.protocols import Example, alternatives, examples
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.cells import SparseCells, add_cells, as_dense
from uldp.schemas.arrays import Counts, Payloads
from uldp.schemas.table import Basis

#: The laws depend on no version of Python or of a library: once is enough.
pytestmark = pytest.mark.slow

EXAMPLES = examples()
#: Windows of N devices, for laws about expectations.
WINDOWS, N = 400, 1000
each = pytest.mark.parametrize("name", EXAMPLES)


def send(example: Example, rng: Generator, n: int) -> Payloads:
    return example.protocol.perturb(example.hold(rng, n), rng)


@cache
def cells_of_windows(name: str) -> list[Counts]:
    """The cells of WINDOWS windows of N devices each."""
    example = EXAMPLES[name]
    payloads = send(example, default_rng(16), WINDOWS * N)
    tallied = example.protocol.mechanism.tally([payloads], np.arange(WINDOWS).repeat(N), WINDOWS)
    return [as_dense(cells) for cells in tallied]


@cache
def linears(name: str) -> list[Estimate]:
    return [EXAMPLES[name].protocol.decoder.linear(cells, N) for cells in cells_of_windows(name)]


@each
def test_the_spec_knows_the_domain_and_the_estimators_of_the_mechanism(name: str) -> None:
    spec, decoder = EXAMPLES[name].spec, EXAMPLES[name].protocol.decoder
    assert spec.mechanism.takes(spec.domain.kind)
    variables = list(spec.variables.values())
    assert all(of.mechanism.takes(of.kind.name) for of in variables)
    # An estimator of a record is one of any attribute.
    assert list(decoder.estimators) == list(dict.fromkeys(chain.from_iterable(of.estimators for of in variables)))
    assert spec.mechanism.estimators[0] == decoder.estimators[0]


@each
def test_payloads_have_the_form_of_the_mechanism_and_are_possible(name: str) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    payloads = send(EXAMPLES[name], default_rng(1), 10_000)
    if mechanism.form.width is None:
        assert payloads.dtype == np.uint32
        assert payloads.shape == (10_000,)
        assert mechanism.form.symbols is not None
        assert payloads.max() < mechanism.form.symbols
    else:
        assert payloads.dtype == np.uint8
        assert payloads.shape == (10_000, mechanism.form.width)
    possible, improbable = mechanism.inspect(payloads)
    assert possible.all()
    assert mechanism.possible(payloads).all()
    # At most 1e-6 of honest reports are improbable: 2 of 10,000 are so with a probability of 5e-5.
    assert improbable.sum() < 2


@each
def test_symbols_that_are_no_payload_are_impossible(name: str) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    symbols = mechanism.form.symbols
    if symbols is not None:
        hostile = np.array([symbols, symbols + 1, 2**31, 2**32 - 1], dtype=np.uint32)
        assert not mechanism.possible(hostile).any()


@each
@pytest.mark.parametrize("beyond", [-1, 0])
def test_a_symbol_outside_of_z_is_refused(name: str, beyond: int) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    symbols = np.repeat(alternatives(mechanism)[0][[0]], 2, axis=0)
    symbols[1, ...] = beyond if beyond < 0 else mechanism.size
    with pytest.raises(ValueError, match="outside"):
        mechanism.perturb(symbols, default_rng(0))


@each
@settings(max_examples=8)
@given(data=st.data(), n=st.integers(0, 60), k=st.sampled_from([1, 2, 300]))
def test_tallies_are_additive_and_sparse_or_dense_alike(name: str, data: st.DataObject, n: int, k: int) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    payloads = send(EXAMPLES[name], default_rng(n), n)
    groups = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)), dtype=np.int64)
    cut = data.draw(st.integers(0, n))
    order = data.draw(st.randoms(use_true_random=False)).sample(range(n), n)
    whole = mechanism.tally([payloads], groups, k)
    in_parts = mechanism.tally([payloads[:cut], payloads[cut:]], groups, k)
    elsewhere = mechanism.tally([payloads[order]], groups[order], k)
    halves = (mechanism.tally([payloads[:cut]], groups[:cut], k), mechanism.tally([payloads[cut:]], groups[cut:], k))
    for group in {0, k - 1, *groups.tolist()}:
        wanted = mechanism.statistic(payloads[groups == group]).tolist()
        assert as_dense(whole[group]).tolist() == wanted
        assert as_dense(in_parts[group]).tolist() == wanted
        assert as_dense(elsewhere[group]).tolist() == wanted
        assert as_dense(add_cells(halves[0][group], halves[1][group])).tolist() == wanted


@each
def test_sparse_cells_give_the_same_tables(name: str) -> None:
    decoder, (one, other) = EXAMPLES[name].protocol.decoder, cells_of_windows(name)[:2]
    total = add_cells(*(SparseCells(len(cells), np.flatnonzero(cells), cells[cells != 0]) for cells in (one, other)))
    assert as_dense(total).tolist() == (one + other).tolist()
    for estimator in decoder.estimators:
        for table, wanted in zip(
            decoder.tables(as_dense(total), 2 * N, estimator),
            decoder.tables(one + other, 2 * N, estimator),
            strict=True,
        ):
            # Least squares go through BLAS, whose last digits may depend on where an array is in memory.
            assert table.values == pytest.approx(wanted.values, rel=1e-9, abs=1e-15)
            assert table.stderr == pytest.approx(wanted.stderr, rel=1e-9, abs=1e-15)


@each
def test_one_report_moves_cells_by_the_largest_step_or_less(name: str) -> None:
    mechanism = EXAMPLES[name].protocol.mechanism
    payloads = send(EXAMPLES[name], default_rng(4), 500)
    steps = np.array([as_dense(cells) for cells in mechanism.tally([payloads], np.arange(500), 500)])
    assert steps.shape == (500, mechanism.statistic_size)
    assert np.abs(steps).max() <= mechanism.largest_step
    assert np.abs(steps).max() == mechanism.largest_step or mechanism.largest_step > 1
    assert mechanism.largest_step << 40 < 2**63
    if mechanism.partitions:
        assert steps.min() >= 0
        assert (steps.sum(axis=1) == 1).all()


@each
def test_cells_of_reports_pass_the_check_and_others_do_not(name: str) -> None:
    mechanism, decoder = EXAMPLES[name].protocol.mechanism, EXAMPLES[name].protocol.decoder
    for cells in cells_of_windows(name):
        decoder.check(cells, N)
    cells = cells_of_windows(name)[0]
    too_many = np.append(cells, 0)
    far = cells.copy()
    far[0] = (N + 1) * mechanism.largest_step
    for wrong in (too_many, too_many[:-2], far, -far):
        with pytest.raises(ValueError):
            decoder.check(wrong, N)
    if mechanism.partitions:
        with pytest.raises(ValueError):
            decoder.check(cells, N + 1)


@each
def test_no_reports_have_cells_but_no_estimate(name: str) -> None:
    mechanism, decoder = EXAMPLES[name].protocol.mechanism, EXAMPLES[name].protocol.decoder
    nothing = mechanism.statistic(send(EXAMPLES[name], default_rng(0), 0))
    decoder.check(nothing, 0)
    assert decoder.p_values(nothing, 0) == {}
    with pytest.raises(ValueError, match="one report or more"):
        decoder.tables(nothing, 0, decoder.estimators[0])


@each
def test_the_linear_estimate_has_no_bias(name: str) -> None:
    values = np.array([linear.values for linear in linears(name)])
    # Given the truth, a count may be certain: its values are then the truth itself.
    error = np.maximum(values.std(axis=0, ddof=1) / np.sqrt(WINDOWS), 1e-12)
    assert (np.abs(values.mean(axis=0) - EXAMPLES[name].truth) / error).max() < 5


@each
def test_times_is_the_covariance_of_the_linear_estimate(name: str) -> None:
    m = len(EXAMPLES[name].truth)
    # Each value alone, all together, and sums in random directions.
    w = np.hstack([np.eye(m), np.ones((m, 1)), default_rng(5).normal(size=(m, 8))])
    sums = np.array([linear.values for linear in linears(name)]) @ w
    claimed = np.mean([(w * linear.times(w)).sum(axis=0) for linear in linears(name)], axis=0)
    certain = claimed < 1e-12  # the sum of all shares that partition, or a value that no device sends
    assert sums.std(axis=0)[certain] == pytest.approx(0, abs=1e-9)
    # The logarithm of a sample variance of normal variables has variance 2/WINDOWS.
    z = np.log(sums.var(axis=0, ddof=1)[~certain] / claimed[~certain]) / np.sqrt(2 / WINDOWS)
    if type(EXAMPLES[name].protocol.decoder) is SetDecoder:
        # Who holds two items is in no count, so of sums there is a bound.
        assert z.max() < 5
        z = z[:m]
    assert np.abs(z).max() < 5


@each
def test_the_variance_of_a_sum_is_the_quadratic_form_of_times(name: str) -> None:
    linear = linears(name)[0]
    m = len(EXAMPLES[name].truth)
    w = np.random.default_rng(6).normal(size=(m, 3))
    if m > 1:  # a single value has its errors at its own share
        assert linear.variance_of(w) == pytest.approx((w * linear.times(w)).sum(axis=0), rel=1e-9, abs=1e-15)
    assert linear.variance_of(np.eye(m)) == pytest.approx(linear.variance)
    assert linear.n.shape == (m,)
    assert ((linear.n > 0) & (linear.n <= N)).all()


@each
def test_the_forecast_is_near_the_error_of_uniform_values(name: str) -> None:
    # Examples are not uniform, so this holds dimension and scale: within a factor of 2.
    forecast = EXAMPLES[name].protocol.decoder.forecast(N)
    claimed = np.sqrt(np.mean([linear.variance for linear in linears(name)], axis=0))
    assert forecast.shape == claimed.shape
    assert 0.5 < forecast.mean() / claimed.mean() < 2


@each
def test_intervals_of_the_linear_estimate_cover(name: str) -> None:
    truth = EXAMPLES[name].truth
    ends = np.array([linear.interval(0.9) for linear in linears(name)])
    # An end may be the truth itself, up to its rounding, for a value that no device sends.
    covered = (ends[:, 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[:, 1])
    # 5 standard deviations of the noise of WINDOWS windows.
    assert covered.mean(axis=0).min() >= 0.9 - 5 * np.sqrt(0.9 * 0.1 / WINDOWS)


@each
def test_small_p_values_of_honest_reports_are_rare(name: str) -> None:
    decoder = EXAMPLES[name].protocol.decoder
    p = [p for cells in cells_of_windows(name)[:300] for p in decoder.p_values(cells, N).values()]
    assert all(0 <= value <= 1 for value in p)
    assert np.count_nonzero(np.array(p) <= 0.01) <= 3 + 5 * np.sqrt(3)


@each
def test_windows_tested_together_have_the_p_values_of_each_alone(name: str) -> None:
    protocol, cells = EXAMPLES[name].protocol, cells_of_windows(name)[0]
    decoder, one = protocol.decoder, protocol.mechanism.statistic(send(EXAMPLES[name], default_rng(2), 1))
    windows = [(cells, N), (one, 1), (7 * cells, 7 * N)]  # one report is too few for most tests
    for together, window in zip(decoder.p_values_of_each(windows), windows, strict=True):
        assert together == pytest.approx(decoder.p_values(*window), rel=1e-9, abs=1e-300)


@each
def test_each_estimator_gives_tables_in_their_shape(name: str) -> None:
    decoder, cells = EXAMPLES[name].protocol.decoder, cells_of_windows(name)[0]
    for estimator in decoder.estimators:
        tables = decoder.tables(cells, N, estimator)
        assert tables
        for table in tables:
            size = int(np.prod(table.shape))
            assert table.values.shape == table.stderr.shape == (size,)
            assert np.isfinite(table.values).all()
            assert (table.stderr >= 0).all()
            assert table.keys is None or len(table.keys) == size
            assert 0 < table.n <= N
            assert (table.basis is Basis.NONE) == (table.low is None) == (table.high is None)
            if table.low is not None and table.high is not None:
                assert (table.low <= table.high).all()


@each
def test_a_check_says_facts_and_errors_in_lines(name: str) -> None:
    described = list(EXAMPLES[name].protocol.decoder.describe(1000, "auto"))
    assert described[-1][0] == "errors"
    assert all(heading.isalpha() and text.isprintable() for heading, text in described)
