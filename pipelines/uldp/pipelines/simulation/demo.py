"""The demonstration: a live fleet of devices in Manhattan, a live stream, live estimates, and a report at the end."""

import shutil
import threading
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.progress import pane_line, summary
from uldp.pipelines.report.page import write_report
from uldp.pipelines.results.read import current
from uldp.pipelines.simulation.fleet import Fleet
from uldp.pipelines.simulation.simulate import simulate
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

#: One report in a hundred is not as it should be.
DUPLICATES, LATE, MALFORMED = 0.004, 0.003, 0.003
START_MS = 1_767_603_600_000  # 2026-01-05T09:00:00Z
DURATION_MS = 3 * 3_600_000
#: Few enough segments that the panes of late reports can be read as they come.
SEGMENT_MS = 8 * 60_000


#: The file that says that a directory is the demonstration's, to be made anew.
_MARK = ".uldp-demo"


class DemoError(ValueError):
    """A directory that the demonstration does not touch; the message says what to do."""


def example(name: str) -> Path:
    """Return the folder of an example: inside of the wheel, or beside the packages in a checkout."""
    shipped = Path(str(resources.files("uldp.pipelines"))) / "examples" / name
    return shipped if shipped.is_dir() else Path(__file__).parents[4] / "examples" / name


def _begin(out: Path) -> None:
    """Make the directory anew, if it is this command's own."""
    if out.exists() and not (out / _MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise DemoError(f"{out}: holds what uldp demo did not make; choose another --out, or empty it yourself")
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()
    for left in ("stream", "results"):
        if (out / left).exists():
            shutil.rmtree(out / left)


def run_demo(out: Path, *, users: int, speed: float, say: Callable[[str], None]) -> None:
    """Run the main job live into ``out``, which is made anew: ``stream``, ``results`` and ``report.html``.

    Args:
        out: A directory that is new, empty, or of an earlier demonstration, which is removed.
        users: Devices that report, once each, over three hours of simulated time.
        speed: Simulated seconds a second.
        say: Takes each line of what happens.

    Raises:
        DemoError: if the directory holds anything else.
    """
    _begin(out)
    folder = example("manhattan")
    spec = CollectionSpec.load(folder / "spec.yaml")
    truth = Truth.load(folder / "truth.csv", spec)
    stream = LocalStream.create(out / "stream", simulated_clock=True)
    fleet = Fleet(
        spec,
        truth,
        users=users,
        seed=1,
        start_ms=START_MS,
        duration_ms=DURATION_MS,
        duplicates=DUPLICATES,
        late=LATE,
        malformed=MALFORMED,
    )
    # A daemon, so that Ctrl-C ends both.
    devices = threading.Thread(
        target=simulate, args=(fleet, stream), kwargs={"speed": speed, "segment_ms": SEGMENT_MS}, daemon=True
    )
    say(f"{users:,} devices report for three hours, {speed:g} times as fast as in earnest, into {stream.path}")
    devices.start()
    jobs.follow(
        [spec],
        stream.path,
        out / "results",
        jobs.pipeline_options([]),
        watermark_delay_ms=10_000,
        say=say,
    )
    say("the newest pane of each window, which late reports have amended:")
    for estimate in current(out / "results", {spec.key: spec})[0]:
        say(pane_line(estimate, spec.labels))
    say(summary(out / "results"))
    report = out / "report.html"
    write_report(out / "results", report, truth={spec.key: truth.distribution}, grid=(25, 25))
    say(f"estimates against the truth that the simulation knows: {report}")
