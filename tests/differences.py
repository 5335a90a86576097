"""What the public files of a results folder show of few reports, by linear algebra."""

from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import numpy as np

from uldp.schemas.arrays import Counts
from uldp.schemas.statistic import unpack_cells


class Isolated(NamedTuple):
    """A combination of public files that is about few reports: its parts, each with a coefficient, and their number."""

    files: tuple[tuple[int, str], ...]
    reports: int


def public_sums(out: Path) -> dict[str, Counts]:
    """Return the cells of each pane in the files that are for others than the job's user, by the name of the file."""
    found: dict[str, Counts] = {}
    for path in sorted(out.glob("counts/*.avro")):
        with path.open("rb") as file:
            for number, value in enumerate(fastavro.reader(file)):
                assert isinstance(value, dict)
                if value["cells"] is not None:
                    found[f"{path.relative_to(out)}#{number}"] = unpack_cells(value["cells"])
    return found


def isolated(out: Path, least: int, files: int = 2) -> list[Isolated]:
    """Return the combinations, with coefficients -1, 0 and 1, of a few public files that are about few reports.

    Args:
        out: Results of reports without privacy, each of a symbol of its own: a cell is a report.
        least: So many reports, or none, are not few.
        files: The most files in a combination.
    """
    sums = public_sums(out)
    size = max((len(cells) for cells in sums.values()), default=0)
    # A window without reports has a single cell.
    dense = {name: cells if len(cells) == size else np.zeros(size, np.int64) for name, cells in sums.items()}
    every = [
        tuple(zip((1, *signs), chosen, strict=True))
        for number in range(1, files + 1)
        for chosen, signs in product(combinations(dense, number), product((-1, 1), repeat=number - 1))
    ]
    counted = [(parts, int(np.count_nonzero(sum(sign * dense[name] for sign, name in parts)))) for parts in every]
    return [Isolated(parts, reports) for parts, reports in counted if 0 < reports < least]


def estimated(out: Path) -> list[dict[str, Any]]:
    """Return the estimates of a folder, as their files have them."""
    found: list[dict[str, Any]] = []
    for path in sorted(out.glob("estimates/*.avro")):
        with path.open("rb") as file:
            found += fastavro.reader(file)  # type: ignore[arg-type]
    return found
