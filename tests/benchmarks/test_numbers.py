"""The benchmark of numbers: its settings, and that each block measures what its module says."""

from benchmarks.numbers import auto, borda, compare, kept, ordered
from benchmarks.numbers.before import before


def test_blocks_have_their_settings() -> None:
    blocks = (auto, ordered, borda, kept, compare)
    assert [len(set(block.settings())) for block in blocks] == [420, 48, 42, 16, 56]
    assert before("auto").keys() == {str(at) for at in range(420)}
    assert before("ordered").keys() == {str(at) for at in range(48)}


def test_equal_settings_have_equal_draws() -> None:
    few = auto.Setting("urr", 20, 1.0, "zipf", 10_000)
    # wls is not worse by more than chance than it is at a million reports, where noise is a hundredth.
    assert auto.errors(few, "wls", 8) == auto.errors(few, "wls", 8) > auto.errors(few._replace(n=1_000_000), "wls", 8)


def test_scores_of_many_reports_about_each_pair_cover() -> None:
    figures, bias, error = borda.measure(borda.Setting(7, 1_000, "worths", 4.0), windows=100)
    assert figures.mean > 0.9
    assert bias < error


def test_roll_ups_and_comparisons_are_measured() -> None:
    measured = kept.measure(kept.Setting("duchi", 3.0, 1.0, 6), roll_ups=60)
    assert measured["roll-up: mean"][1] > 0.75
    whole, single, least = compare.measure(compare.Setting("rr", 1.0, 3_000, 3_000), windows=60)
    assert whole < 0.2
    assert single < 0.25
    assert least > 0.75
