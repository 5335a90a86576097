"""``Aggregate`` in a pipeline of others: behind their windows and triggers, and under Beam's checks of types."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.embedded import OF_A_STREAM, OF_AN_ARCHIVE, WINDOWS, outputs

CHECKS = [
    "--runtime_type_check",
    "--performance_runtime_type_check",
    "--pipeline_type_check",
    "--no_pipeline_type_check",
    "--type_check_additional=all",
]

#: Each takes seconds, so that a landing tries few.
RUNNERS = {"FnApiRunner": OF_AN_ARCHIVE, "BundleBasedDirectRunner": OF_A_STREAM}
LANDING = ("sessions", "accumulating", "--runtime_type_check")


def both(name: str, kinds: Sequence[str]) -> pytest.MarkDecorator:
    cases = [
        pytest.param(runner, expected, kind, marks=() if kind in LANDING else pytest.mark.nightly)
        for runner, expected in RUNNERS.items()
        for kind in kinds
    ]
    return pytest.mark.parametrize(("runner", "expected", name), cases)


@both("windows", list(WINDOWS))
def test_windows_and_triggers_of_others_change_nothing(
    runner: str, expected: dict[str, int], windows: str, tmp_path: Path
) -> None:
    assert outputs(runner, windows=WINDOWS[windows](), out=tmp_path / "lines") == expected


@both("check", CHECKS)
def test_all_elements_pass_each_check_of_types(
    runner: str, expected: dict[str, int], check: str, tmp_path: Path
) -> None:
    assert outputs(runner, check, windows=WINDOWS["sliding"](), out=tmp_path / "lines") == expected
