"""What tests of others are given: reports of a truth, and a check that estimates cover it, which can fail."""

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that

from tests import build
from tests.build import START
from uldp.collector import Collector
from uldp.collector.testing import covers, fake_messages
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms import Aggregate

SPEC = build.spec(domain={"labels": ["red", "green", "blue"]}, mechanism={"name": "rr", "epsilon": 2.0})
WITH_BUDGET = build.spec(domain={"size": 3}, budget={"epsilon": 1, "every": "30d"})
TRUTH = {"red": 700, "green": 200, "blue": 100}
OTHER = {"red": 200, "green": 700, "blue": 100}


def collected(spec: CollectionSpec, truth: dict[str, int]) -> Collector:
    collector = Collector([spec])
    assert collector.add(fake_messages(spec, truth, START, seed=1)) == []
    return collector


def test_estimates_cover_the_truth_of_their_reports_and_no_other() -> None:
    collector = collected(SPEC, TRUTH)
    covers(SPEC, TRUTH)(collector.estimates())
    with pytest.raises(AssertionError, match=r"c by .*: 'red' has the share 0\.2, and the interval is \[0\.[67]"):
        covers(SPEC, OTHER)(collector.estimates())
    covers(SPEC, OTHER, misses=2)(collector.estimates())


def test_no_estimate_covers_nothing() -> None:
    with pytest.raises(AssertionError, match="c: there is no estimate"):
        covers(SPEC, TRUTH)([])


def test_each_device_has_a_ledger_and_values_without_labels_their_index() -> None:
    collector = collected(WITH_BUDGET, {"0": 900, "2": 300})
    covers(WITH_BUDGET, {"0": 900, "2": 300})(collector.estimates())
    (statistic,) = collector.statistics()
    assert statistic.n == 1200


def test_it_is_a_matcher_of_beam() -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        messages = pipeline | beam.Create(fake_messages(SPEC, TRUTH, START, seed=1))
        assert_that((messages | Aggregate([SPEC])).estimates, covers(SPEC, TRUTH))


@pytest.mark.parametrize("unknown", [{"pink": 1}, {"": 1}])
def test_an_unknown_value_is_named(unknown: dict[str, int]) -> None:
    with pytest.raises(RequestError, match=r"^c has no value"):
        fake_messages(SPEC, unknown, START, seed=1)


def test_another_kind_of_domain_is_refused() -> None:
    number = build.spec(domain={"number": {"low": 0, "high": 1}}, mechanism={"name": "duchi", "epsilon": 1.0})
    with pytest.raises(RequestError, match="is no collection of values"):
        fake_messages(number, {"0": 1}, START, seed=1)
