"""Ranges, shares below edges and quantiles from reports of a tree: how they are asked for, and their laws."""

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.tree.decoder import TreeDecoder
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held

NUMBER = {"domain": {"number": {"low": 0, "high": 100}}, "mechanism": {"name": "tree", "epsilon": 1.0, "bins": 1000}}
N = 20_000


@pytest.mark.parametrize(("bins", "epsilon"), [(100, 1.0), (1_000, 1.0), (300, 3.0)])
def test_errors_of_edges_and_bins_are_those_of_sums_over_all_levels(bins: int, epsilon: float) -> None:
    mechanism = {"name": "tree", "epsilon": epsilon, "bins": bins}
    protocol, rng = build_protocol(build.spec(**NUMBER | {"mechanism": mechanism})), default_rng(5)
    payloads = protocol.perturb([Held(100 * rng.beta(2, 5, N), np.full(N, -1))], rng)
    cells = as_dense(protocol.mechanism.tally([payloads], np.zeros(N, np.int64), 1)[0])
    assert isinstance(protocol.decoder, TreeDecoder)
    for repeats in (0.0, 2.0):
        linear = protocol.decoder.linear(cells, N, repeats)
        edges = np.array(protocol.decoder.bins.edges()[0])
        exact = linear.sums((np.arange(bins)[:, np.newaxis] < edges).astype(np.float64))
        found = linear.of_edges(edges)
        ratio = np.sqrt(found.variance[edges] / exact.variance)
        assert (np.abs(ratio - 1) < 1e-9).mean() >= 0.2
        assert ratio == pytest.approx(1.0, abs=0.05)
        assert found.variance[[0, -1]] == pytest.approx([0, 0], abs=1e-12)
        some = np.arange(0, bins, 7)
        single = linear.sums(np.eye(bins)[:, some])
        assert linear.cumulants.variance[some] == pytest.approx(single.variance, rel=0.06)
        assert linear.cumulants.third[some] == pytest.approx(single.third, abs=0.02 * single.variance.max() ** 1.5)


def test_few_reports_without_one_about_a_bin_have_no_tables() -> None:
    protocol = build_protocol(build.spec(**NUMBER))
    cells = np.zeros(protocol.mechanism.statistic_size, dtype=np.int64)
    cells[0] = 1
    assert isinstance(protocol.decoder, TreeDecoder)
    assert protocol.decoder.tables(cells, 1, "auto") == ()
