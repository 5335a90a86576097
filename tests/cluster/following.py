"""``uldp stream`` on a cluster, as a user runs it: a command in a process, the job that it starts, what that writes."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, cast

import fastavro

from tests.cluster.daemons import Daemon, wait_until
from tests.cluster.flink import Flink
from uldp.pipelines.results.newest import newest
from uldp.schemas.pane import Accounting, PaneHeader, PaneKind
from uldp.schemas.statistic import Statistic, counts_from_avro

#: What tests wait for comes the sooner, the more often these are.
OFTEN = ["--checkpointing_interval=2000", "--max_bundle_time_mills=200"]


def uldp(*arguments: object) -> list[str]:
    """Return the command that runs ``uldp`` of this environment."""
    return [str(Path(sys.executable).with_name("uldp")), *map(str, arguments)]


def run_uldp(*arguments: object) -> str:
    """Run ``uldp`` to its end; returns what it printed.

    Raises:
        RuntimeError: if it fails, with what it said.
    """
    done = subprocess.run(uldp(*arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"uldp {arguments[0]} ended with {done.returncode}: {done.stderr[-4000:]}")
    return done.stdout


@dataclass(frozen=True)
class Results:
    """A folder of results, while a job writes it. What was read once is read again only if it was written again."""

    folder: Path
    _read: dict[Path, tuple[int, list[PaneHeader]]] = field(default_factory=dict, init=False, repr=False)

    def panes(self) -> list[PaneHeader]:
        """Return the newest pane of each window; none before the first."""
        for path in self.folder.glob("counts/[!.]*.avro"):
            written = path.stat().st_mtime_ns
            if path not in self._read or self._read[path][0] != written:
                with path.open("rb") as file:
                    records = cast(Iterator[dict[str, Any]], fastavro.reader(file))
                    self._read[path] = written, list(map(counts_from_avro, records))
        return newest(pane for _, panes in self._read.values() for pane in panes)

    def total(self) -> Accounting:
        """Add the accounting of all windows."""
        return sum((pane.accounting for pane in self.panes()), Accounting())

    def counts(self) -> dict[int, list[int]]:
        """Return the counts of each window in which enough was counted to publish them, by its start in ms."""
        return {
            pane.window_start: pane.cells.tolist() for pane in self.panes() if isinstance(pane, Statistic) and pane.n
        }

    def wait_for(self, sent: Accounting) -> None:
        """Wait until all that was sent has arrived, more of each kind or as much, and all windows have closed."""

        def all_there() -> bool:
            panes = self.panes()
            found = sum((pane.accounting for pane in panes), Accounting())
            arrived = all(there >= each for there, each in zip(astuple(found), astuple(sent), strict=True))
            return arrived and all(pane.pane.kind is not PaneKind.EARLY for pane in panes)

        wait_until(all_there, f"there is {sent} in closed windows", seconds=240)


@contextmanager
def following(
    flink: Flink, source: str, spec: Path, out: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run ``uldp stream`` on all of a cluster; gives the id of the job, and cancels it at the end if it still runs."""
    command = uldp("stream", "--spec", spec, "--from", source, "--to", out, "--watermark-delay", "3s")
    runner = [*flink.arguments, f"--parallelism={flink.size}", *OFTEN, *options]
    with Daemon([*command, *runner], out.with_suffix(".log"), environment or {}) as submitter:
        job = submitter.wait_until(flink.cluster.running_jobs, f"{source} is followed", seconds=180)[0]
        try:
            yield job
        finally:
            if job in flink.cluster.running_jobs():
                flink.cluster.cancel(job)
