"""An estimate has the statistic of its own pane, and of no other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.pane_files import estimate_file, statistic_file
from tests.pipelines.results.samples import COUNTS, ESTIMATE, folder_of
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file

LATER: dict[str, Any] = {"pane": Pane(PaneKind.LATE, 3), "accounting": Accounting(110, 103, 4, 2, 1)}


def write(out: Path, *files: tuple[str, bytes]) -> None:
    for name, content in files:
        write_file(str(out / name), content)


def test_the_statistic_is_that_of_the_newest_pane(tmp_path: Path) -> None:
    newer = replace(ESTIMATE, **LATER), replace(COUNTS, **LATER, cells=COUNTS.cells + 1)
    for estimate, statistic in ((ESTIMATE, COUNTS), newer):
        write(tmp_path, estimate_file(estimate), statistic_file(statistic))
    found = folder_of(tmp_path).current()
    assert found.estimates == [newer[0]]
    assert found.statistic_of(newer[0]) == newer[1]


@pytest.mark.parametrize(
    "other",
    [
        replace(COUNTS, pane=Pane(PaneKind.ON_TIME, 1)),
        replace(COUNTS, device_digest=build.DIGEST),
        replace(COUNTS, accounting=Accounting(100, 100)),
    ],
)
def test_another_statistic_is_not_taken_for_it(other: Statistic, tmp_path: Path) -> None:
    """Such as that of an earlier run, which used the revision too."""
    write(tmp_path, estimate_file(ESTIMATE), statistic_file(other))
    found = folder_of(tmp_path).current()
    assert found.estimates == [ESTIMATE]
    assert found.statistic_of(ESTIMATE) is None
