"""Questions about records and strings: counts under specs that ask for other tables, candidates or searches."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uldp.mechanisms.questions.span import Version
from uldp.pipelines.results.kept import Kept
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.candidates import Discover
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.variable import Variable
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


def asking(kept: Kept, candidates: Path | None, discover: Discover | None) -> Kept:
    """Return counts under specs with other candidates, from a CSV file with the column ``value``, or another search.

    RequestError if a collection has no strings, more than one attribute of strings, or finds none, or if the file
    cannot be read, or has other strings than those of the domain.
    """
    if candidates is None and discover is None:
        return kept
    versions = {key: _version(version.spec, candidates, discover) for key, version in kept.versions.items()}
    return replace(kept, versions=versions)


def _version(spec: CollectionSpec, candidates: Path | None, discover: Discover | None) -> Version:
    variables: dict[str, Variable] = dict(spec.variables)
    if candidates is not None:
        name = _only(spec, "candidates", {name: each.kind.takes_candidates for name, each in variables.items()})
        asked = variables[name]
        folder, most = SpecFolder(candidates.parent), asked.mechanism.most_candidates
        try:
            variables[name] = replace(asked, candidates=asked.kind.candidates(None, candidates.name, most, folder))
        except ValueError as error:
            raise RequestError(f"--candidates: {str(error).removeprefix('candidates_file: ')}") from error
    if discover is not None:
        name = _only(spec, "discover", {name: each.mechanism.discovers for name, each in variables.items()})
        variables[name] = replace(variables[name], discover=discover)
    return Version(spec.with_variables(variables))


def _only(spec: CollectionSpec, option: str, fitting: Mapping[str, bool]) -> str:
    """Return the only variable that an option is for."""
    names = [name for name, fits in fitting.items() if fits]
    if len(names) != 1:
        where, of = f"--{option}: collection {spec.collection} version {spec.version}", spec.mechanism.name
        if not names:
            raise RequestError(f"{where}: {of} has no strings for this; choose another with --collection")
        raise RequestError(f"{where} has several attributes of strings: {', '.join(names)}; change its spec")
    return names[0]
