"""A table of shares over two things as rows and columns of text."""

from collections.abc import Iterator, Sequence

from uldp.schemas.specs.mistakes import printable
from uldp.schemas.table import Table

#: A matrix with more columns has shares without their intervals, so that a line fits a screen.
_WITH_INTERVALS = 6
#: More columns are left out.
_MOST_COLUMNS = 16


def matrix_text(table: Table, rows: Sequence[str], columns: Sequence[str], places: int) -> Iterator[str]:
    """Yield lines of a row-major matrix of shares in percent, with intervals of few columns; a dash is no estimate."""
    shape = (len(rows), len(columns))
    values, stderr = (array.reshape(shape) for array in (table.values, table.stderr))
    low, high = ((values if end is None else end).reshape(shape) for end in (table.low, table.high))
    shown = range(min(len(columns), _MOST_COLUMNS))
    with_ends = table.low is not None and len(columns) <= _WITH_INTERVALS

    def cell(i: int, j: int) -> str:
        if not stderr[i, j]:
            return "-"
        text = f"{100 * values[i, j]:z.{places}f}"
        return f"{text} {100 * low[i, j]:z.{places}f} to {100 * high[i, j]:z.{places}f}" if with_ends else text

    names = [printable(name) for name in rows]
    body = [[cell(i, j) for j in shown] for i in range(len(rows))]
    heads = [printable(columns[j]) for j in shown]
    widths = [max(len(head), *(len(line[j]) for line in body)) for j, head in enumerate(heads)]
    first = max(map(len, names))

    def line(name: str, cells: Sequence[str]) -> str:
        return f"    {name:<{first}}  " + "  ".join(
            f"{text:>{width}}" for text, width in zip(cells, widths, strict=True)
        )

    yield line("", heads)
    yield from (line(name, cells) for name, cells in zip(names, body, strict=True))
    if left := len(columns) - len(shown):
        yield f"    and {left} columns more, which export has"
