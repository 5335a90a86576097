"""Derive ``truth.csv`` and ``background/*.csv`` from the check-ins that README.md names.

    python examples/manhattan/derive.py nyc_checkins_train.csv nyc_checkins_test.csv

The same input gives the same bytes. The sensitive cells are printed; ``spec.yaml`` lists them.
"""

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

# Degrees. Decimal, because coordinates such as 40.76 lie on a border between cells, which binary fractions miss.
SOUTH, WEST = Decimal("40.70"), Decimal("-74.04")
HEIGHT, WIDTH = Decimal("0.004"), Decimal("0.0048")
ROWS = COLUMNS = 25

TAGS = {"Residence": "home", "Professional & Other Places": "workplace"}
SENSITIVE_CATEGORY, SENSITIVE_USERS = "Nightlife Spot", 5


class CheckIn(NamedTuple):
    """One row of the source, with its coordinates replaced by a cell."""

    cell: int
    category: str
    poi: str
    user: str


def cell_of(latitude: Decimal, longitude: Decimal) -> int | None:
    """Return the cell row * 25 + column, row 0 in the south and column 0 in the west; None outside of the box."""
    if latitude < SOUTH or longitude < WEST:  # // rounds towards zero and would put these into cell row or column 0
        return None
    row, column = int((latitude - SOUTH) // HEIGHT), int((longitude - WEST) // WIDTH)
    return row * COLUMNS + column if row < ROWS and column < COLUMNS else None


def read_check_ins(path: Path) -> Iterator[CheckIn]:
    """Yield the check-ins of one CSV file that lie in the box."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = cell_of(Decimal(row["lat"]), Decimal(row["lon"]))
            if cell is not None:
                yield CheckIn(cell, row["category"], row["poi"], row["label"])


def sensitive_cells(check_ins: Iterable[CheckIn]) -> set[int]:
    """Return the cells with a point of interest of the sensitive category that enough different users visited."""
    users = defaultdict(set)
    for check_in in check_ins:
        if check_in.category == SENSITIVE_CATEGORY:
            users[check_in.cell, check_in.poi].add(check_in.user)
    return {cell for (cell, _), visitors in users.items() if len(visitors) >= SENSITIVE_USERS}


def write(path: Path, header: tuple[str, ...], rows: Iterable[tuple[int | str, ...]]) -> None:
    """Write one CSV file, sorted."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(sorted(rows))


def main() -> None:
    """Read, check the published figures, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, metavar="DIRECTORY")
    arguments = parser.parse_args()

    check_ins = [*read_check_ins(arguments.train), *read_check_ins(arguments.test)]
    sensitive = sensitive_cells(check_ins)
    figures = len(check_ins), len({check_in.cell for check_in in check_ins}), len(sensitive)
    if figures != (28_028, 432, 15):
        parser.error(f"expected 28028 check-ins in 432 cells, 15 of them sensitive, got {figures}; is this the source?")

    # A user-specific sensitive region lies in X_N: a home in a cell of X_S is protected there and needs no tag.
    tagged = [(c.cell, "" if c.cell in sensitive else TAGS.get(c.category, ""), c.poi) for c in check_ins]
    truth = Counter((cell, tag) for cell, tag, _ in tagged)
    write(arguments.to / "truth.csv", ("value", "tag", "weight"), ((*key, weight) for key, weight in truth.items()))
    (arguments.to / "background").mkdir(exist_ok=True)
    for name in TAGS.values():
        places = Counter(cell for cell, tag, _ in set(tagged) if tag == name)
        write(arguments.to / "background" / f"{name}.csv", ("value", "weight"), places.items())
    print("sensitive:", sorted(sensitive))


if __name__ == "__main__":
    main()
