"""The rows of a table of all values, which may be thousands: text that is made without a template."""

from collections.abc import Sequence
from html import escape

import numpy as np

from uldp.schemas.arrays import Floats
from uldp.schemas.specs.mistakes import printable


def rows(labels: Sequence[str], columns: Sequence[tuple[Floats, int]]) -> str:
    """Return an HTML table's rows, with escaped labels, of shares (|X|,) and decimals; the first are in order."""
    order = np.argsort(-columns[0][0], kind="stable")
    cells = [_cells(shares[order], places) for shares, places in columns]
    names = [escape(printable(labels[i])) for i in order.tolist()]
    return "".join(
        f'<tr><th scope="row">{name}</th>{"".join(of_row)}</tr>\n'
        for name, of_row in zip(names, zip(*cells, strict=True), strict=True)
    )


def _cells(shares: Floats, places: int) -> list[str]:
    return [f'<td class="number">{100 * share:z.{places}f}</td>'.replace("-", "−") for share in shares.tolist()]
