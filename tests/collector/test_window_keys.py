"""The keys under which a stream keeps its windows: they are state, so what they are is fixed."""

import numpy as np
import pytest

from tests import build
from uldp.collector.collections import BLOCK_CELLS, ServedCollection, serve
from uldp.collector.window_keys import WindowKeys, WindowTimes, times_of


def served(**overrides: object) -> ServedCollection:
    spec = build.spec(**overrides)
    return serve([spec])[spec.key]


def many(n: int, **overrides: object) -> list[ServedCollection]:
    return [served(collection=f"c{number}", **overrides) for number in range(n)]


def test_keys_and_slots_are_those_of_savepoints() -> None:
    place = WindowKeys(16).place(served(domain={"size": 5}, window={"size": "1h", "offset": "5m"}))
    assert place == (("3600000 0 300000 5 0", 1), 274936191254698513)


def test_collections_of_the_same_windows_share_as_many_keys_as_shards() -> None:
    places = [WindowKeys(16).place(each) for each in many(300, domain={"size": 5})]
    assert {place.group[1] for place in places} == set(range(16))
    assert len({place.group[0] for place in places}) == 1
    assert len({place.offset for place in places}) == 300


@pytest.mark.parametrize("size", [5, 64, 65, 640, 5000])
def test_the_cells_of_a_key_do_not_grow_with_the_domain(size: int) -> None:
    collections = many(400, domain={"size": size})
    groups = [WindowKeys(1).place(each).group for each in collections]
    assert len(set(groups)) <= -(-size // 64)
    most = max(map(groups.count, groups)) * size
    assert most <= 4 * 64 * len(collections)  # four times the mean, as 400 digests of 79 shards may fall


@pytest.mark.parametrize(
    "other",
    [
        {"domain": {"size": 6}},
        {"window": {"size": "2h"}},
        {"window": {"size": "1h", "offset": "5m"}},
        {"window": {"size": "1h", "period": "5m"}},
    ],
)
def test_other_windows_have_other_keys(other: dict[str, object]) -> None:
    one = served(domain={"size": 5}, window={"size": "1h"})
    assert WindowKeys(1).place(one).group[0] != WindowKeys(1).place(served(**{"domain": {"size": 5}} | other)).group[0]


def test_what_may_change_in_a_spec_changes_no_key() -> None:
    one, other = (
        served(window={"size": "1h"}),
        served(window={"size": "1h", "early_every": "1m", "allowed_lateness": "1h"}, estimator="mle"),
    )
    assert WindowKeys(16).place(one) == WindowKeys(16).place(other)


@pytest.mark.parametrize(
    "overrides", [{"window": {"size": "1h", "period": "5m"}}, {"domain": {"size": BLOCK_CELLS + 1}}]
)
def test_sliding_windows_and_large_domains_have_keys_of_their_own(overrides: dict[str, object]) -> None:
    assert len({WindowKeys(1).place(each).group for each in many(40, **overrides)}) == 40


@pytest.mark.parametrize(
    ("window", "period"), [({"size": "1h"}, 0), ({"size": "1d", "period": "1h", "offset": "10m"}, 3_600_000)]
)
def test_the_times_of_a_key_are_those_of_its_collections(window: dict[str, str], period: int) -> None:
    each = served(window=window)
    times = WindowTimes(each.window_size, period, each.offset)
    assert times_of(WindowKeys(1).place(each).group[0]) == times


def test_sliding_windows_share_a_span_and_fixed_ones_do_not() -> None:
    starts, keys = np.array([0, 3_600_000]), WindowKeys(1)
    assert keys.origins(served(window={"size": "1h"}), starts).tolist() == [0, 3_600_000]
    assert keys.origins(served(window={"size": "2h", "period": "1h"}), starts).tolist() == [0, 0]


def test_sketches_are_cells_of_a_key() -> None:
    sketched = {"mechanism": {"name": "olh", "epsilon": 1.0}, "domain": {"size": 10}}
    assert served(**sketched).sketched
    groups = {WindowKeys(1).place(each).group for each in many(400, **sketched)}
    assert len(groups) > 50  # of 65 shards
    assert all(name.endswith(" 1") for name, _ in groups)
