"""How often intervals over several windows cover the truth."""

import pytest

from benchmarks.asked_windows import MECHANISMS, NAMES, kept, sliding


def test_answers_over_windows_are_of_kept_responses_and_of_slices() -> None:
    """20 runs: one interval is expected to miss, and more than 6 with a probability of 1e-4."""
    assert len(NAMES) == 4
    assert kept("rr", 20)[:3].min() >= 1 - 6 / 20
    assert sliding("rr", 20).min() >= 1 - 6 / 20


@pytest.mark.nightly
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_cover_as_often_as_they_say(name: str) -> None:
    *of_kept, as_if_others = kept(name, 1000)
    assert all(0.93 <= covered <= 0.975 for covered in (*of_kept, *sliding(name, 1000)))
    assert as_if_others <= 0.92
