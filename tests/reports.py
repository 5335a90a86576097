"""Messages taken apart: the reports that a message holds, one by one."""

from collections.abc import Iterable

from uldp.schemas.framing import report_store
from uldp.schemas.records import Report
from uldp.schemas.rejected import Rejected


def reports_of(data: bytes) -> list[Report]:
    """The reports that a message holds.

    Raises:
        ValueError: if it does not decode, or if the columns of a batch do not fit each other.
    """
    name, record = report_store().decode(data)
    if name == "uldp.Report":
        return [Report(**record)]
    ids, times = record["report_ids"], record["event_times"]
    ((kind, column),) = record["payload"].items()
    n = len(times) // 8
    width = 4 if kind == "symbols" else len(column) // max(n, 1)
    if (len(ids), len(times), len(column)) != (16 * n, 8 * n, width * n):
        raise ValueError("columns differ in length")
    cells = [column[width * row : width * (row + 1)] for row in range(n)]
    return [
        Report(
            record["collection"],
            record["version"],
            ids[16 * row : 16 * (row + 1)],
            int.from_bytes(times[8 * row : 8 * (row + 1)], "little", signed=True),
            int.from_bytes(cell, "little") if kind == "symbols" else cell,
        )
        for row, cell in enumerate(cells)
    ]


def rejected_reports(records: Iterable[Rejected]) -> set[Report | bytes]:
    """The different reports in records of rejected reports; a message that does not decode is one report."""
    found: set[Report | bytes] = set()
    for record in records:
        for data, _ in record.each():
            try:
                found.update(reports_of(data))
            except ValueError:
                found.add(data)
    return found
