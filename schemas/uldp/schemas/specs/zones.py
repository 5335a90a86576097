"""The zones of a tag: a part of the spec that says how a device divides the values behind a tag."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from uldp.schemas.arrays import Symbols
from uldp.schemas.specs.tables import Table
from uldp.schemas.specs.values import Values

#: The zone of all values that the file does not name.
REST = "rest"
#: The most zones of a tag: a device keeps a table of them, and each takes reports from the others.
MOST_ZONES = 1024

_LABEL = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, eq=False)
class Zones:
    """A division of the values behind a tag."""

    #: The name of each zone, in the order of the file; ``REST`` is the last one if the file leaves values out.
    labels: tuple[str, ...]
    of_value: Symbols  # shape (|X|,): the zone of each value


def read_zones(path: Path, values: Values) -> Zones:
    """Read rows ``value,zone``, with ``rest`` for others; ValueError, without the file, if that is not possible."""
    of_value = np.full(values.size, -1, dtype=np.int64)
    zones: dict[str, int] = {}

    def parse(row: list[str]) -> tuple[int, str]:
        index = values.read_value(row[0])
        if of_value[index] >= 0:
            raise ValueError("the value occurs twice; remove one row")
        if not _LABEL.fullmatch(row[1]):
            raise ValueError("a zone must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -")
        if row[1] == REST:
            raise ValueError(f"the zone {REST} is of the values that the file does not name; remove the row")
        return index, row[1]

    for index, zone in Table.read(path, ["value", "zone"], optional=True).each(parse):
        of_value[index] = zones.setdefault(zone, len(zones))
    if (of_value < 0).any():
        of_value[of_value < 0] = zones.setdefault(REST, len(zones))
    if not 2 <= len(zones) <= MOST_ZONES:
        raise ValueError(
            f"there must be 2 to {MOST_ZONES:,} zones, got {len(zones):,}; divide the values otherwise, or remove zones"
            " from the tag"
        )
    return Zones(tuple(zones), of_value)


def zones_text(zones: Zones, values: Sequence[str]) -> str:
    """Return the file that ``read_zones`` reads as these zones, from each value's label, or index as text."""
    file = io.StringIO(newline="")
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["value", "zone"])
    for value in np.argsort(zones.of_value, kind="stable").tolist():
        label = zones.labels[zones.of_value[value]]
        if label != REST:
            rows.writerow([values[value], label])
    return file.getvalue()
