"""The demonstration: a live fleet of devices in Manhattan, a live stream, live estimates, and a report at the end."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.progress import pane_line, summary
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.report.page import report_page, write_page
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.simulation.fleet import Fleet
from uldp.pipelines.simulation.simulate import simulate
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.listing import is_empty
from uldp.transforms.io.local.stream import LocalStream

#: One report in a hundred is a duplicate, late or malformed.
DUPLICATES, LATE, MALFORMED = 0.004, 0.003, 0.003
START_MS = 1_767_603_600_000  # 2026-01-05T09:00:00Z
DURATION_MS = 3 * 3_600_000
#: Segments this long keep the panes of late reports few enough to read while they fire.
SEGMENT_MS = 8 * 60_000


#: This file marks a directory of the demonstration, which may delete and remake its contents.
_MARK = ".uldp-demo"


def example(name: str) -> Path:
    """Return the folder of an example, which is inside the wheel, or beside the packages in a checkout."""
    shipped = Path(str(resources.files("uldp.pipelines"))) / "examples" / name
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "examples" / name


def _begin(out: Path) -> None:
    """Create the directory, and delete an earlier demonstration in it; refuse any other content."""
    if out.exists() and not (out / _MARK).is_file() and not is_empty(out):
        raise RequestError(
            f"{out}: holds files that uldp demo did not create; choose another --out, or empty the directory yourself"
        )
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()
    for left in ("stream", "results"):
        if (out / left).exists():
            shutil.rmtree(out / left)


@contextmanager
def _reporting(fleet: Fleet, stream: LocalStream, speed: float, interrupt: Callable[[], None]) -> Iterator[None]:
    """Let devices report in the background; an error of theirs ends the context, whose job would wait for ever."""
    errors: list[Exception] = []
    ended = threading.Event()

    def report() -> None:
        try:
            simulate(fleet, stream, speed=speed, segment_ms=SEGMENT_MS)
        except Exception as error:
            errors.append(error)
            if not ended.is_set():
                interrupt()

    try:
        # A daemon thread, so that Ctrl-C ends the devices and the job.
        threading.Thread(target=report, daemon=True).start()
        yield
    except KeyboardInterrupt:
        if not errors:
            raise
        raise errors[0] from None
    finally:
        ended.set()


def run_demo(out: Path, *, users: int, speed: float, say: Callable[[str], None], interrupt: Callable[[], None]) -> None:
    """Run the main job live, and write ``stream``, ``results`` and ``report.html`` to ``out``, over an earlier demo.

    Each of ``users`` reports once during three hours of simulated time, of which ``speed`` seconds take one.
    ``interrupt`` raises ``KeyboardInterrupt`` here once an error has ended the devices. RequestError if the directory
    holds anything else, OSError if it cannot be written.
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
    say(f"{users:,} devices report for three hours, {speed:g} times as fast as real devices, into {stream.path}")
    results_folder = out / "results"
    results_folder.mkdir()  # so that uldp serve can begin before the first pane is there
    say(f"to watch in a browser, run in another shell: uldp serve {results_folder}")
    with _reporting(fleet, stream, speed, interrupt):
        settings = JobSettings(watermark_delay_ms=10_000, say=say)
        jobs.follow([spec], stream.path, results_folder, jobs.pipeline_options([]), settings)
    say("the newest estimate of each window:")
    results = ResultsFolder(results_folder)
    for estimate in results.current().estimates:
        say(pane_line(estimate, spec))
    say(summary(results_folder))
    report = out / "report.html"
    made = int(time.time() * 1000)
    write_page(report_page(results, made=made, truth={spec.key: truth.shares()}), report)
    say(f"report with the estimates and the truth: {report}")
