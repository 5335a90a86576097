"""The reports of an archive that a client wrote to be tested, and the devices that made them."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from uldp.pipelines.clients.inspection import Inspection
from uldp.pipelines.clients.sent import archived_messages, in_chunks
from uldp.pipelines.results.text import number_of
from uldp.schemas.arrays import Payloads, ReportIds, Symbols
from uldp.schemas.errors import RequestError
from uldp.schemas.records import SENDER

#: Fewer reports show only gross errors.
MIN_REPORTS = 1_000
#: More reports are not read, so that the command ends soon; so many find deviations of a thousandth.
MAX_REPORTS, MAX_BYTES = 1_000_000, 1 << 28


@dataclass(frozen=True, eq=False)
class Archived:
    """Reports of devices that all hold one value."""

    path: str  # the archive
    payloads: Payloads  # the payloads of n reports, in the order of the archive
    #: Shape (n,): the number of the device that made each report, in the order of their first reports. Without
    #: permanent responses, each report counts as one of a device of its own.
    devices: Symbols

    @property
    def reports(self) -> int:
        """The number of reports, n."""
        return len(self.payloads)

    @property
    def text(self) -> str:
        """The number of reports, and of devices if they are fewer."""
        devices = len(self.rows(1))
        of_devices = "" if devices == self.reports else f" of {number_of(devices, 'device')}"
        return f"{number_of(self.reports, 'report')}{of_devices}"

    @cached_property
    def _of_devices(self) -> tuple[Symbols, Symbols, Symbols]:
        """The rows of the reports, device by device; where in them each device begins; and how many it has."""
        order = np.argsort(self.devices, kind="stable")
        starts, counts = np.unique(self.devices[order], return_index=True, return_counts=True)[1:]
        return order, starts, counts

    def rows(self, times: int) -> Symbols:
        """Return the rows of the first reports of each device that made so many; shape (devices, times)."""
        order, starts, counts = self._of_devices
        rows: Symbols = order[starts[counts >= times, np.newaxis] + np.arange(times)]
        return rows

    @property
    def last(self) -> Symbols:
        """The row of the last report of each device that made two or more."""
        order, starts, counts = self._of_devices
        rows: Symbols = order[(starts + counts - 1)[counts > 1]]
        return rows

    @property
    def times(self) -> int:
        """The largest number of reports that ``MIN_REPORTS`` devices or more made."""
        return int(np.sort(self._of_devices[2])[-MIN_REPORTS])


def read_archive(inspection: Inspection, path: str, *, by_device: bool) -> Archived:
    """Read the first reports of an archive, about as many as the limits allow; ``by_device``, messages name devices.

    RequestError, which says what to do, if a collector would not count each report, an id is there twice, or they are
    too few to show anything.
    """
    ids: list[ReportIds] = []
    payloads: list[Payloads] = []
    names: list[str | None] = []
    before, size = inspection.reports, 0
    for chunk in in_chunks(archived_messages(path)):
        for judged in inspection.read(chunk):
            ids.append(judged.parsed.report_ids)
            payloads.append(judged.parsed.payloads)
            size += payloads[-1].nbytes
            if by_device:
                names += [chunk[origin].attributes.get(SENDER) for origin in judged.parsed.origins.tolist()]
        if inspection.reports - before >= MAX_REPORTS or size >= MAX_BYTES:
            break
    if inspection.rejected:
        rejected = number_of(inspection.rejected, "report")
        raise RequestError(f"{path}: a collector rejects {rejected}; uldp decode says why")
    n = sum(map(len, ids))
    if n < MIN_REPORTS:
        raise RequestError(
            f"{path}: holds {number_of(n, 'report')}, which show little; let the client report this value"
            f" {MIN_REPORTS:,} times or more"
        )
    if repeated := n - len(np.unique(np.concatenate(ids), axis=0)):
        raise RequestError(
            f"{path}: {number_of(repeated, 'report')} of {n:,} repeat the report_id of another; give each report"
            " 16 fresh random bytes"
        )
    of = Archived(path, cast(Payloads, np.concatenate(payloads)), _numbered(names) if by_device else np.arange(n))
    if by_device:
        _check_devices(of, names.count(None))
    return of


def _numbered(names: list[str | None]) -> Symbols:
    """Return a number for each name, in the order in which they come."""
    found: dict[str | None, int] = {}
    return np.array([found.setdefault(name, len(found)) for name in names], np.int64)


def _check_devices(of: Archived, nameless: int) -> None:
    if nameless:
        raise RequestError(
            f"{of.path}: {number_of(nameless, 'report')} of {of.reports:,} name no device, and reports of one permanent"
            f" response depend on each other; name the device of each message in its attribute {SENDER}, in tests alone"
        )
    if (devices := len(of.last)) < MIN_REPORTS:
        raise RequestError(
            f"{of.path}: {number_of(devices, 'device')} reported twice or more, which show little of the responses that"
            f" devices keep; let {MIN_REPORTS:,} devices or more report the value, each in two windows or more"
        )
