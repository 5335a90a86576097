"""Tables of attributes of a record, and those of one attribute given another, put to kept counts."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from uldp.mechanisms.questions.span import Version
from uldp.pipelines.results.kept import Kept
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.table import Table, TableName


@dataclass(frozen=True)
class WantedTable:
    """A table that was asked for."""

    text: str  # the option
    attributes: tuple[str, ...]  # the names of its attributes
    given: str | None  # that among whose values the others are counted; None for shares of all users

    @classmethod
    def read(cls, text: str, given: str | None) -> "WantedTable":
        """Read ``--table`` and ``--given``; RequestError if it is no list of attributes, or none of two is given."""
        try:
            names = tuple(name.strip() for name in next(csv.reader([text], strict=True)))
        except (csv.Error, StopIteration) as error:
            raise RequestError(f"--table {quote(text)}: write attributes with commas between them: A,B") from error
        if given is not None and (len(names) != 2 or given not in names):
            raise RequestError(f"--given {quote(given)}: write two attributes in --table, one of which is given")
        return cls(text, names, given)

    @property
    def pair(self) -> list[str]:
        """What is given, and what is asked for."""
        return sorted(self.attributes, key=lambda name: name != self.given)

    def is_that(self, table: Table) -> bool:
        """Return whether a table is the one."""
        if self.given is not None:
            return table.name is TableName.GIVEN and list(table.of) == self.pair
        return table.name is not TableName.GIVEN and {*table.of} == {*self.attributes}

    def missing(self, spec: CollectionSpec, tables: Sequence[Table]) -> RequestError:
        """Return what says that none of the tables of a spec is the one."""
        known = list(dict.fromkeys(",".join(table.of) for table in tables if table.of))
        where = f"--table {quote(self.text)}: collection {spec.collection} version {spec.version} has no such table"
        if not known:
            return RequestError(f"{where}, because it collects no record; leave out --table")
        unknown = next((name for name in self.attributes if name not in spec.variables), None)
        if unknown is not None:
            return RequestError(f"--table: no attribute {quote(unknown)}{notes(near(unknown, spec.variables))}")
        return RequestError(f"{where}; there are {'; '.join(known)}")


def asking_given(kept: Kept, wanted: Sequence[WantedTable]) -> Kept:
    """Return counts under specs that ask for one attribute given another; RequestError if no report is of both."""
    pairs = [each.pair for each in wanted if each.given is not None]
    if not pairs:
        return kept
    return replace(kept, versions={key: Version(_given(each.spec, pairs)) for key, each in kept.versions.items()})


def _given(spec: CollectionSpec, pairs: list[list[str]]) -> CollectionSpec:
    try:
        spec.mechanism.check_given(list(spec.domain.record or ()), pairs)
    except ValueError as error:
        _, _, text = str(error).partition(": ")
        raise RequestError(f"--given: collection {spec.collection} version {spec.version}: {text}") from error
    return spec.model_copy(update={"given": pairs})


def chosen(wanted: Sequence[WantedTable], tables: Sequence[Table]) -> Iterator[Table]:
    """Yield the tables that were asked for, in the order of the tables; all if none was."""
    return (table for table in tables if not wanted or any(each.is_that(table) for each in wanted))
