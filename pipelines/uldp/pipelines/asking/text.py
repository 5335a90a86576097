"""Answers as lines of text, and as a Parquet file, which needs the extra pyarrow, imported at its first use."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from uldp.mechanisms.questions.answer import About, Row
from uldp.mechanisms.questions.compare import WHOLE
from uldp.mechanisms.questions.span import Spent, names
from uldp.pipelines.aside import written_aside
from uldp.pipelines.results.export_files import check_target
from uldp.pipelines.results.tables import decimals
from uldp.pipelines.results.text import number_of
from uldp.schemas.errors import RequestError
from uldp.schemas.records import iso
from uldp.schemas.specs.mistakes import plain, printable
from uldp.schemas.table import TableName

#: The shares that are shown in the order of their table, and not by size.
_IN_ORDER = (TableName.RANGE, TableName.BELOW, TableName.GIVEN, TableName.BEATS)


def answers_text(answers: Sequence[Row], *, top: int) -> Iterator[str]:
    """Yield a block of lines for each time, of each quantity the largest ``top``; at the end, what all assume."""
    for (collection, versions, slices, period, start, end), block in groupby(answers, _block):
        of_block = list(block)
        version = f"v{versions[0]}" if len(versions) == 1 else f"versions {names(versions)}"
        of_slices = f"  {printable(slices)}" if slices else ""
        yield f"{collection} {version}{of_slices}  {period}  ({iso(start)} to {iso(end)})"
        first = of_block[0]
        most = max(each.n for each in of_block)
        yield f"  n {most:,} of {number_of(first.windows, 'window')}"
        yield f"  spent  {_spent(first)}"
        if first.flags:
            yield f"  flags: {', '.join(first.flags)}"
        for (attribute, quantity), same in groupby(of_block, lambda each: (each.attribute, each.quantity)):
            yield from _quantity_text(attribute, quantity, list(same), top, most)
    for assumed in dict.fromkeys(each.assumed for each in answers):
        yield f"assumed: {assumed}"


def _spent(answer: Row) -> str:
    """Say what users who report in each window of an answer have spent."""
    if answer.spent is None:
        return "all privacy: the reports are the values"
    most = Spent(answer.spent, answer.spent_one_value or answer.spent).text()
    return f"{most}, by a user who reports as often as possible"


def _block(answer: Row) -> tuple[str, tuple[int, ...], str | None, str, int, int]:
    return answer.collection, answer.versions, answer.slice, answer.period, answer.start, answer.end


def _quantity_text(attribute: str | None, quantity: str, answers: list[Row], top: int, n: int) -> Iterator[str]:
    """Yield the lines of a quantity, with its reports if they are not n."""
    if answers[0].against is not None:
        yield from _difference_text(attribute, quantity, answers, top)
        return
    name, comma, kind = quantity.partition(",")
    percent = answers[0].unit == "share"
    in_order = not percent or quantity in _IN_ORDER
    shown = answers[:top] if in_order else sorted(answers, key=lambda each: -each.estimate)[:top]
    of, unit = f" of {attribute}" if attribute else "", ", in %" if percent else ""
    some = f"the first {len(shown)}" if in_order else f"the {len(shown)} largest"
    how_many = f"{some} of {len(answers)}" if len(shown) < len(answers) else f"{len(answers)}"
    reports = f", n {answers[0].n:,}" if answers[0].n != n else ""
    if answers[0].label is not None:
        yield printable(f"  {name}{of}{comma}{kind}{unit}, {how_many}{reports}")
    yield from _figures(shown, 100.0 if percent else 1.0)


def _difference_text(attribute: str | None, quantity: str, answers: list[Row], top: int) -> Iterator[str]:
    """Yield the lines of differences, the most significant first."""
    of, first = f" of {attribute}" if attribute else "", answers[0]
    if quantity == WHOLE:
        size = f"{first.estimate:.2f} times as large as noise makes them"
        yield f"  all{of} together: differences {size}, {_p(first.p_value)}"
        return
    factor, unit = (100.0, ", in points") if first.unit == "points" else (1.0, "")
    shown = sorted(answers, key=lambda each: (each.p_value or 0.0, -abs(each.estimate)))[:top]
    least = [factor * each.smallest for each in answers if each.smallest]
    if least:
        between = f"{min(least):.3g} to {max(least):.3g}" if max(least) > 1.01 * min(least) else f"{min(least):.3g}"
        yield f"  {quantity}{of} since {first.against}{unit}: sees changes of {between} or more, in 4 of 5 cases"
    yield from _figures(shown, factor)


def _p(p_value: float | None) -> str:
    """Write a p-value."""
    return "" if p_value is None else "p < 0.0001" if p_value < 1e-4 else f"p {p_value:.2g}"


def _figures(answers: Sequence[Row], factor: float) -> Iterator[str]:
    """Yield a line for each answer, all with one width and one number of decimals, that of two digits of the error."""
    names = [printable(_name(each)) for each in answers]
    places = decimals(np.array([factor / 100 * (each.stderr or 0.0) for each in answers]))
    numbers = [_numbers(each, factor, places) for each in answers]
    widths = [max(map(len, column)) for column in (names, *zip(*numbers, strict=True))]
    for name, row, each in zip(names, numbers, answers, strict=True):
        cells = "  ".join(f"{cell:>{width}}" for cell, width in zip((name, *row), widths, strict=True))
        yield f"    {cells}  {_p(each.p_adjusted)}".rstrip()


def _name(answer: Row) -> str:
    """Return the name of an answer in its line: the value, or the quantity of a single number."""
    if answer.label is not None:
        return answer.label
    return f"{answer.quantity} of {answer.attribute}" if answer.attribute else answer.quantity


def _numbers(answer: Row, factor: float, places: int) -> tuple[str, str]:
    """Write an estimate and its interval, or its error."""
    if answer.quantity in (TableName.P_VALUE, TableName.INDEPENDENCE):
        return _p(answer.estimate), ""
    if answer.quantity == TableName.FOUND:
        return "yes" if answer.estimate else "no", ""
    estimate, error = f"{factor * answer.estimate:z.{places}f}", ""
    if answer.low is not None and answer.high is not None:
        error = f"{factor * answer.low:z.{places}f} to {factor * answer.high:z.{places}f}"
    elif answer.stderr:
        error = f"± {factor * answer.stderr:.2g}"
    return estimate, error


def answer_json(answer: Row) -> dict[str, Any]:
    """Return the fields of one line of JSON; times are in ISO 8601."""
    return asdict(answer) | {"start": iso(answer.start), "end": iso(answer.end)}


def check_parquet(target: Path) -> None:
    """Raise RequestError if answers cannot be written to a file of this name."""
    if target.suffix.lower() != ".parquet":
        raise RequestError(f"{plain(str(target))}: answers are written to a file that ends in .parquet; or use --json")
    check_target(target)


def write_answers(target: Path, answers: Sequence[Row]) -> None:
    """Write answers as rows, and replace an older file; OSError if the operating system refuses to write the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = {"start", "end"}
    rows = [
        {name: printable(value) if isinstance(value, str) else value for name, value in asdict(answer).items()}
        | {"flags": ", ".join(answer.flags) or None, "versions": ", ".join(map(str, answer.versions))}
        for answer in answers
    ]
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    fields = []
    for name, annotation in (About.__annotations__ | Row.__annotations__).items():
        plain_type = str(getattr(annotation, "__name__", annotation)).split(" | ")[0]
        of_type = pa.timestamp("ms", "UTC") if name in times else types.get(plain_type, pa.string())
        fields.append(pa.field(name, of_type))
    with written_aside(target) as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), path)
