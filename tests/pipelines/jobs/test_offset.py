"""Windows with an offset: a job of which all times are later by it has the same panes, as much later."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.build import HOUR, MINUTE, START, message, report, spec
from tests.pipelines.jobs.test_resuming import begun, follow
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.message_files import write_messages

#: A job of one collection in a folder, with all times so much later; returns its panes.
Run = Callable[[Path, CollectionSpec, int], Sequence[object]]
#: No multiple of a slice.
OFFSET = 23 * MINUTE
WINDOWS = {
    "fixed": {"size": "2h", "allowed_lateness": "1h"},
    "short": {"size": "30m", "allowed_lateness": "10m"},
    "sliding": {"size": "4h", "period": "30m", "allowed_lateness": "1h"},
}


def messages(later: int) -> list[Message]:
    """A report each five minutes of a day, some of them late, and some copies."""
    found = []
    for number in range(288):
        published = START + later + number * 5 * MINUTE
        late = (number % 7 == 6) * 90 * MINUTE + (number % 31 == 30) * 5 * HOUR
        found.append(message(report(number - number % 11 % 2, number % 5, published - late), published))
    return found


def panes(out: Path, later: int) -> Sequence[object]:
    """All panes of a job, with the times of one without an offset."""
    return sorted(
        (
            pane.window_start - later,
            pane.window_end - later,
            pane.pane.revision,
            pane.pane.kind,
            pane.accounting.received,
            pane.n,
            pane.flags,
            pane.cells.tolist() if isinstance(pane, Statistic) else None,
        )
        for pane in ResultsFolder(out, lambda error: pytest.fail(str(error))).panes()
    )


def stream(folder: Path, of: CollectionSpec, later: int) -> Sequence[object]:
    followed = begun(folder, messages(later), 288)
    follow(followed, folder / "out", [of])
    return panes(folder / "out", later)


def backfill(folder: Path, of: CollectionSpec, later: int) -> Sequence[object]:
    (folder / "archive").mkdir(parents=True)
    with (folder / "archive" / "0.avro").open("wb") as file:
        write_messages(file, messages(later))
    jobs.backfill([of], folder / "archive", folder / "out", jobs.pipeline_options([]))
    return panes(folder / "out", later)


@pytest.mark.parametrize(("run", "window"), [(stream, "fixed"), *((backfill, window) for window in WINDOWS)])
def test_panes_are_those_of_windows_without_offset(tmp_path: Path, run: Run, window: str) -> None:
    limits = {"min_reports": 4}
    plain, later = (
        spec(window=WINDOWS[window] | {"offset": offset}, limits=limits) for offset in ("0s", f"{OFFSET}ms")
    )
    without = run(tmp_path / "plain", plain, 0)
    assert len(without) >= 12
    assert run(tmp_path / "later", later, OFFSET) == without


def test_an_offset_is_less_than_a_slice() -> None:
    remedy = "offset must be less than period, 30m; 45m means the same windows as 15m"
    with pytest.raises(SpecError, match=remedy):
        spec(window={"size": "2h", "period": "30m", "offset": "45m"})


# Days, weeks and months of windows with an offset, and jobs that stop.
