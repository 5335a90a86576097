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
    """What all rows of an answer have in common."""

    question: str  # the name of the question
    collection: str  # the name of the collection
    version: int  # the version whose counts were used; of several, the newest
    versions: tuple[int, ...]  # all of them
    start: int  # the first millisecond that reports were counted in, since 1970-01-01 UTC
    end: int  # the millisecond behind the last one
    period: str  # the name of the time, such as a day of a calendar
    windows: int  # the number of windows whose counts were summed
    n: int  # the number of counted reports behind the numbers
    slice: str | None = None  # the slices that the counts are of, as ``os=ios``; None for all
    attribute: str | None  # the attribute of a record; None if the collection has one variable
    quantity: str  # what is estimated, as ``share`` or ``mean``
    unit: Unit  # the unit of the numbers
    level: float | None = None  # the probability with which each interval covers the truth; None without intervals
    looks: Literal["one"] = "one"  # at how many looks at growing counts the intervals cover at once: at one
    flags: tuple[str, ...] = ()  # the flags of the windows
    #: The most that a user with a report in each window has spent, whatever the values are, in nats; None without
    #: privacy.
    spent: float | None = None
    #: The same of a user whose value stays as it is; it may be less if devices keep responses.
    spent_one_value: float | None = None
    against: str | None = None  # the version and time that a difference is from; None of other answers
    assumed: str  # what is taken as true besides the spec; one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(About):
    """One number of an answer, and what it is about."""

    label: str | None  # the value or the group that it is of; None if the quantity is one number
    estimate: float  # the number
    unbiased: float | None = None  # the unbiased estimate, which may be added and averaged; None if there is none
    stderr: float | None = None  # the standard error of the unbiased estimate, or else of the number
    low: float | None = None  # the lower end of its interval; None if it has none
    high: float | None = None  # the upper end
    p_value: float | None = None  # the probability of so large a difference if there is none; None of other answers
    p_adjusted: float | None = None  # the same, corrected for the number of differences
    smallest: float | None = None  # the smallest change that is found with probability .8


@dataclass(frozen=True, eq=False)
class Answer:
    """The numbers that answer a question."""

    about: About  # what all of them have in common
    labels: Sequence[str | None]  # the label of each; see ``Row``
    columns: dict[str, Floats] = field(default_factory=dict)  # the fields of rows by their names, each of shape (rows,)

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
    columns = {"estimate": table.values} | {
        each: getattr(table, each) for each in ("unbiased", "stderr", "low", "high")
    }
    level = None if table.low is None else table.level
    shared = {"n": table.n, "quantity": table.name.value, "unit": unit_of(table.name), "level": level}
    return answer_of(span, question, labels, columns, attribute=attribute, **shared)
