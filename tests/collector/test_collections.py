"""What decoding needs of a spec: slices, closing times, admissible event times."""

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.collector.collections import ServedCollection, serve
from uldp.schemas.specs.collection import CollectionSpec


def make_spec(**keys: object) -> CollectionSpec:
    window = {"size": "1h", "allowed_lateness": "30m"}
    return build.spec(**{"sensitive": [0], "window": window, "limits": {"max_clock_skew": "5m"}} | keys)


def target(**keys: object) -> ServedCollection:
    spec = make_spec(**keys)
    return serve([spec])[spec.key]


@pytest.mark.parametrize("skew", [0, 5])
def test_a_window_needs_what_was_published_within_its_reach(skew: int) -> None:
    """Its first report is ahead of its start by the skew, as was the first of which the job then knew the id."""
    of = target(limits={"max_clock_skew": f"{skew}m"})
    assert of.reach == of.sealed_after + of.remembered_for + 2 * skew * MINUTE


@pytest.mark.parametrize(
    ("window", "age"),
    [
        ({"size": "1h"}, 365),
        ({"size": "200d", "allowed_lateness": "165d"}, 365),
        ({"size": "200d", "allowed_lateness": "166d"}, 366),
        ({"size": "730d"}, 730),
    ],
)
def test_a_report_may_be_a_year_old_or_as_old_as_a_window_counts(window: object, age: int) -> None:
    (earliest,), _ = target(window=window).event_times(np.array([START]))
    assert earliest == START - age * 24 * HOUR


@pytest.mark.parametrize(("size", "slices"), [(2, 8), (2**14, 4), (2**20, 1)])
def test_the_sums_of_a_span_are_bounded(size: int, slices: int) -> None:
    (served,) = serve([build.spec(domain={"size": size})]).values()
    assert served.span_size == slices * served.slice_size


def test_two_specs_of_one_version_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^two specs have collection c and version 1; raise the version of one$"):
        serve([make_spec(), make_spec()])


def test_no_spec_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^no spec is given; give at least one$"):
        serve([])


def test_collections_with_the_same_variables_share_a_protocol() -> None:
    alike = [build.spec(collection=name, window={"size": size}) for name, size in (("a", "1h"), ("b", "2h"))]
    larger, quieter = (
        build.spec(collection="c", domain={"size": 9}),
        build.spec(collection="d", intervals="simultaneous"),
    )
    served = serve([*alike, larger, quieter])
    a, b, *others = (each.protocol for each in served.values())
    assert a is b
    assert len({id(each) for each in (a, *others)}) == 3
    assert [each.device_digest for each in served.values()] == [each.spec.device_digest for each in served.values()]
