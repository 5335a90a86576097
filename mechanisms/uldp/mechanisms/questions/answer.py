"""An answer: what is estimated of one variable over a span, with its errors, and what it assumes.

Tables of a pane are answers to standing questions, and ``uldp ask`` puts others. Every reader takes its rows from here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from uldp.mechanisms.questions.span import Span
from uldp.schemas.arrays import Floats
from uldp.schemas.labels import value_labels
from uldp.schemas.table import INTERVAL_LEVEL, NUMBERS, Table, TableName

#: What the numbers of an answer are: parts of the users, differences of such parts, probabilities, or other numbers.
Unit = Literal["share", "points", "probability", "number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What all rows of an answer have in common.

    Attributes:
        question: The name of the question.
        collection: The name of the collection.
        version: The version whose counts were used; of several, the newest.
        versions: All of them.
        start: The first millisecond that reports were counted in, since 1970-01-01 UTC.
        end: The millisecond behind the last one.
        period: The name of the time, such as a day of a calendar.
        windows: The number of windows whose counts were summed.
        n: The number of counted reports behind the numbers.
        slice: The slices that the counts are of, as ``os=ios``; None for all.
        attribute: The attribute of a record; None if the collection has one variable.
        quantity: What is estimated, as ``share`` or ``mean``.
        unit: The unit of the numbers.
        level: The probability with which each interval covers the truth; None without intervals.
        looks: At how many looks at growing counts the intervals cover at once: at one.
        flags: The flags of the windows.
        spent: The most that a user with a report in each window has spent, whatever the values are, in nats; None
            without privacy.
        spent_one_value: The same of a user whose value stays as it is; it may be less if devices keep responses.
        against: The version and time that a difference is from; None of other answers.
        assumed: What is taken as true besides the spec; one sentence.
    """

    question: str
    collection: str
    version: int
    versions: tuple[int, ...]
    start: int
    end: int
    period: str
    windows: int
    n: int
    slice: str | None = None
    attribute: str | None
    quantity: str
    unit: Unit
    level: float | None = None
    looks: Literal["one"] = "one"
    flags: tuple[str, ...] = ()
    spent: float | None = None
    spent_one_value: float | None = None
    against: str | None = None
    assumed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(About):
    """One number of an answer, and what it is about.

    Attributes:
        label: The value or the group that it is of; None if the quantity is one number.
        estimate: The number.
        unbiased: The unbiased estimate, which may be added and averaged; None if there is none.
        stderr: The standard error of the unbiased estimate, or else of the number.
        low: The lower end of its interval; None if it has none.
        high: The upper end.
        p_value: The probability of so large a difference if there is none; None of other answers.
        p_adjusted: The same, corrected for the number of differences.
        smallest: The smallest change that is found with probability .8.
    """

    label: str | None
    estimate: float
    unbiased: float | None = None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    smallest: float | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """The numbers that answer a question.

    Attributes:
        about: What all of them have in common.
        labels: The label of each; see ``Row``.
        columns: The fields of rows by their names, each of shape (rows,).
    """

    about: About
    labels: Sequence[str | None]
    columns: dict[str, Floats] = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """Yield each number with all that is said of it."""
        shared, names = asdict(self.about), list(self.columns)
        columns = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        for label, numbers in zip(self.labels, columns, strict=True):
            yield Row(**shared, label=label, **dict(zip(names, numbers, strict=True)))


def rows_of(answers: Iterable[Answer]) -> Iterator[Row]:
    """Yield the rows of answers."""
    for answer in answers:
        yield from answer.rows()


def answer_of(
    span: Span,
    question: str,
    labels: Sequence[str | None],
    columns: Mapping[str, Floats | None],
    *,
    attribute: str,
    **fields: Any,
) -> Answer:
    """Return an answer about a span: what the span says of it, the other fields of ``About``, and the columns."""
    spec = span.version.spec
    known = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items() if column is not None}
    given = {"assumed": span.assumed, "spent": span.spent, "level": INTERVAL_LEVEL if "low" in known else None} | fields
    whatever, one_value = given.pop("spent") or (None, None)
    about = About(
        question=question,
        collection=spec.collection,
        version=spec.version,
        versions=span.versions,
        start=span.period.start,
        end=span.period.end,
        period=span.period.name,
        windows=len(span.sizes),
        slice=span.version.slices or None,
        attribute=attribute or None,
        flags=span.flags,
        spent=whatever,
        spent_one_value=one_value,
        **given,
    )
    return Answer(about, labels, known)


def answers_by_quantity(
    span: Span,
    question: str,
    labels: Sequence[str | None],
    quantities: Sequence[str],
    columns: Mapping[str, Floats],
    **fields: Any,
) -> Iterator[Answer]:
    """Yield an answer for each quantity that some of the numbers are; see ``answer_of``."""
    for quantity in dict.fromkeys(quantities):
        at = [i for i, each in enumerate(quantities) if each == quantity]
        own = {name: column[at] for name, column in columns.items()}
        yield answer_of(span, question, [labels[i] for i in at], own, quantity=quantity, **fields)


def unit_of(name: TableName) -> Unit:
    """Return the unit of the numbers of a table."""
    if name in (TableName.P_VALUE, TableName.FOUND, TableName.INDEPENDENCE):
        return "probability"
    return "number" if name in (*NUMBERS, TableName.BOUND) else "share"


def table_answers(question: str, span: Span, tables: Iterable[Table]) -> Iterator[Answer]:
    """Yield the answers of those of the tables of a span that have rows."""
    for table in tables:
        if table.name not in (TableName.VISIBLE, TableName.BAND):
            yield answer_to(question, span, table, " x ".join(table.of))


def answer_to(question: str, span: Span, table: Table, attribute: str) -> Answer:
    """Return the answer that a table of an attribute gives, or of several."""
    alone = len(table.values) == 1 and table.keys is None
    labels: Sequence[str | None] = [None] if alone else value_labels(table, span.version.spec)
    columns = {
        "estimate": table.values,
        "unbiased": table.unbiased,
        "stderr": table.stderr,
        "low": table.low,
        "high": table.high,
    }
    level = None if table.low is None else table.level
    shared = {"n": table.n, "quantity": table.name.value, "unit": unit_of(table.name), "level": level}
    return answer_of(span, question, labels, columns, attribute=attribute, **shared)
