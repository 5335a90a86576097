"""The score of found items, and the sets of which it is."""

import numpy as np
import pytest

from benchmarks.many_items import cumulative_rank, measure, sets


def test_the_first_item_counts_most() -> None:
    truth = np.array([5, 9, 1, 7])
    assert cumulative_rank(np.array([0.0, 3.0, 1.0, 2.0]), truth, top=2) == 1.0
    assert cumulative_rank(np.array([3.0, 0.0, 1.0, 2.0]), truth, top=2) == pytest.approx(1 / 3)


def test_a_device_reports_different_items_of_its_set() -> None:
    rng = np.random.default_rng(1)
    ((rows, held),) = sets(2000, 50, 3, rng)
    assert all(len({*row[row >= 0].tolist()}) == (row >= 0).sum() for row in rows)
    reported = np.bincount(rows[rows >= 0], minlength=50)
    assert (reported <= held).all()
    assert reported.sum() == np.minimum((rows >= 0).sum(axis=1), 3).sum()


def test_many_users_find_the_items_that_most_hold() -> None:
    assert measure(4.0, 100_000, 200, 4, np.random.default_rng(2)) > 0.9
