"""What the benchmark of pooled versions measures."""

from collections.abc import Sequence

import pytest

from benchmarks.pooling import SETTINGS, Version, measure


@pytest.mark.parametrize("versions", [SETTINGS[1], SETTINGS[-1]], ids=["two versions", "three versions"])
def test_pooled_versions_are_closer_to_the_truth_than_each_version_and_than_means(versions: Sequence[Version]) -> None:
    pooled, *others = measure(versions, seeds=2)
    assert pooled < min(others)
