"""An answer: one number with its error, and what it is of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from uldp.mechanisms.questions.pool import Pool
from uldp.mechanisms.questions.span import Span
from uldp.schemas.labels import value_labels
from uldp.schemas.table import Table, TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One number that answers a question.

    Attributes:
        question: The name of the question.
        collection: The name of the collection.
        version: The version whose counts were used; of several, the newest.
        versions: All of them.
        start: The first millisecond that reports were counted in, since 1970-01-01 UTC.
        end: The millisecond behind the last one.
        period: The name of the time, such as a day of a calendar.
        windows: The number of windows whose counts were summed.
        n: The number of counted reports behind the number.
        slice: The slices that the counts are of, as ``os=ios``; None for all.
        attribute: The attribute of a record; None if the collection has one variable.
        quantity: What is estimated, as ``share`` or ``mean``.
        label: The value or the group that it is of; None if the quantity is one number.
        estimate: The number.
        unbiased: The unbiased estimate, which may be added and averaged; None if there is none.
        stderr: The standard error of the unbiased estimate, or else of the number.
        low: The lower end of its interval; None if it has none.
        high: The upper end.
        level: The probability with which the interval covers the truth.
        flags: The flags of the windows.
        spent: The most that a user with a report of one value in each window has spent, in nats; None without privacy.
        against: The version and time that a difference is from; None of other answers.
        p_value: The probability of so large a difference if there is none; None of other answers.
        p_adjusted: The same, corrected for the number of differences.
        smallest: The smallest change that is found with probability .8.
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
    label: str | None
    estimate: float
    unbiased: float | None = None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    flags: tuple[str, ...] = ()
    spent: float | None = None
    against: str | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    smallest: float | None = None
    assumed: str


def table_answers(question: str, span: Span | Pool, tables: Iterable[Table]) -> Iterator[Answer]:
    """Yield the entries of those of the tables of a span that have rows."""
    for table in tables:
        if table.name not in (TableName.VISIBLE, TableName.BAND):
            yield from answers_of(question, span, table, " x ".join(table.of))


def answer_of(span: Span | Pool, question: str, *, attribute: str, **fields: Any) -> Answer:
    """Return an answer about a span: what the span says of it, and the other fields of ``Answer``."""
    spec = span.version.spec
    return Answer(
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
        **{"assumed": span.assumed, "spent": span.spent} | fields,
    )


def answers_of(question: str, span: Span | Pool, table: Table, attribute: str) -> Iterator[Answer]:
    """Yield the entries of a table of an attribute, or of several."""
    labels = None if len(table.values) == 1 and table.keys is None else value_labels(table, span.version.spec)
    for i in range(len(table.values)):
        yield answer_of(
            span,
            question,
            attribute=attribute,
            n=table.n,
            quantity=table.name.value,
            label=None if labels is None else labels[i],
            estimate=float(table.values[i]),
            unbiased=None if table.unbiased is None else float(table.unbiased[i]),
            stderr=float(table.stderr[i]),
            low=None if table.low is None else float(table.low[i]),
            high=None if table.high is None else float(table.high[i]),
            level=None if table.low is None else table.level,
        )
