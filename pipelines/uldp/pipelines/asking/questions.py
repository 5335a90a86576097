"""A question of the command line, put to kept counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uldp.mechanisms.pooling.versions import difference
from uldp.mechanisms.questions.answer import Answer, table_answers
from uldp.mechanisms.questions.compare import Correction, compare
from uldp.mechanisms.questions.explain import explain, find
from uldp.mechanisms.questions.periods import Every, zone_of
from uldp.mechanisms.questions.rollup import RollUp, pool_up, total
from uldp.mechanisms.questions.shares import Shares, shares_of
from uldp.mechanisms.questions.slices import Group, counts_of, groups_by, version_of
from uldp.mechanisms.questions.smoothed import smoothed
from uldp.mechanisms.questions.span import Span, Version
from uldp.mechanisms.questions.sums import groups_of, quantiles, range_of, ranges, sums
from uldp.pipelines.asking.groups import Wanted
from uldp.pipelines.asking.records import WantedTable, chosen
from uldp.pipelines.results.kept import Kept
from uldp.schemas.errors import RequestError
from uldp.schemas.records import iso
from uldp.schemas.specs.kinds import Range
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.slices import EQUALS

# So many times are named in an error.
_NAMED = 6


@dataclass(frozen=True)
class Asked:
    """The spans that a question is about."""

    #: The spans of each version, or of all versions of each collection together, in order.
    spans: Sequence[Sequence[Span]]
    every: Every | None  # the length of periods; None for windows
    estimator: str | None  # the estimator; None for the first of each spec

    @classmethod
    def of(
        cls,
        kept: Kept,
        every: Every | None,
        zone: str,
        estimator: str | None,
        *,
        pooled: bool = False,
        by: Sequence[str] = (),
    ) -> "Asked":
        """Sum the kept counts, of all slices together, or by ``groups_by``; if ``pooled``, of all versions together.

        RequestError if there is no such zone, windows and periods do not fit, versions cannot be pooled, or one has not
        the public attributes of ``by``.
        """
        calendar = zone_of(zone)
        rolled: dict[tuple[str, str], list[RollUp]] = {}
        for key in sorted(kept.versions):
            version = kept.versions[key]
            groups = _groups(version, by)
            statistics = list(kept.statistics(key)) if len(groups) > 1 else kept.statistics(key)
            for group in groups:
                of_group = version_of(version, group)
                counts = counts_of(version, statistics, group)
                found = rolled.setdefault((key[0], of_group.slices), [])
                found.append(RollUp(of_group, counts, every, calendar))
        if not pooled:
            spans = [each.spans() for of_versions in rolled.values() for each in of_versions]
            return cls([each for each in spans if each], every, estimator)
        return cls([pools for each in rolled.values() if (pools := pool_up(each))], every, estimator)

    def tables(self, wanted: Sequence[WantedTable] = ()) -> Iterator[Answer]:
        """Yield all tables of each span, or the wanted ones; RequestError if no span has one of these."""
        for span in self._each():
            tables = span.tables(self._estimator(span))
            for each in wanted:
                if not any(each.is_that(table) for table in tables):
                    raise each.missing(span.version.spec, tables)
            yield from table_answers("roll_up", span, list(chosen(wanted, tables)))

    def sums(self, wanted: Wanted) -> Iterator[Answer]:
        """Yield the sums over groups of values of each span."""
        for span in self._each():
            for shares, groups in wanted.of(list(shares_of(span))):
                yield from sums(shares, groups_of(shares, groups))

    def compare(
        self,
        first: str,
        second: str,
        wanted: Wanted,
        correction: Correction,
        *,
        same_devices: bool,
        beside: "Asked | None" = None,
    ) -> Iterator[Answer]:
        """Yield differences between two times, versions or collections; RequestError if they have reports in common."""
        before, after = self._named(first), (beside or self)._named(second)
        one, other = before.version.spec, after.version.spec
        same = beside is None and one.key == other.key and before.version.slices == after.version.slices
        if same and before.period.start < after.period.end and after.period.start < before.period.end:
            names = f"{quote(first)} and {quote(second)}"
            raise RequestError(f"{names} have reports in common; take times that do not meet")
        if why := difference(one, other):
            raise RequestError(f"{quote(first)} and {quote(second)} cannot be compared: {why}")
        of_before = {shares.attribute: shares for shares in shares_of(before)}
        both = [(of_before[each.attribute], each) for each in shares_of(after) if each.attribute in of_before]
        if not wanted:
            for pair in both:
                yield from compare(*pair, correction=correction, same_devices=same_devices)
            return
        for shares, groups in wanted.of([each for _, each in both]):
            pair = of_before[shares.attribute], shares
            yield from compare(*pair, groups_of(shares, groups), correction, same_devices=same_devices)

    def ranges(self, texts: Sequence[str], levels: Sequence[float]) -> Iterator[Answer]:
        """Yield each span's shares of ranges, ``attribute=LOW:HIGH`` of a record, and quantiles, or RequestError."""
        for span in self._each():
            estimator, variables = self._estimator(span), list(shares_of(span))
            of_variables: dict[str, list[Range]] = {each.attribute: [] for each in variables}
            for text in texts if variables else ():
                shares, found = _range(variables, text)
                of_variables[shares.attribute].append(found)
            ordered = [each for each in variables if each.decoder.number_of_bins is not None] or variables
            for each in variables:
                if of_variables[each.attribute]:
                    yield from ranges(each, of_variables[each.attribute], estimator)
                if levels and each in ordered:
                    yield from quantiles(each, levels, estimator)

    def over_time(self) -> Iterator[Answer]:
        """Yield filtered and smoothed numbers of each span; RequestError if spans are fewer than 3, or overlap."""
        for spans in self.spans:
            yield from smoothed(spans)

    def explain(self, name: str, value: str) -> Iterator[tuple[str, str]]:
        """Yield the steps of the estimate of a value, each a heading and a sentence."""
        span = self._named(name)
        shares, position = find(list(shares_of(span)), value)
        for step in explain(shares, position, self._estimator(span)):
            heading, _, text = step.partition(": ")
            yield heading, text

    def _each(self) -> Iterator[Span]:
        return (span for spans in self.spans for span in spans)

    def _estimator(self, span: Span) -> str:
        return span.version.decoder.known(self.estimator or span.version.spec.estimators[0])

    def _named(self, name: str) -> Span:
        """Return the span of a name: a time, ``vN`` for all of a version, or ``TIME@vN``.

        ``@COLLECTION`` is all of a collection, ``TIME@COLLECTION`` a time of it, and ``COLLECTION:vN`` a version.
        """
        time, at, place = name.rpartition("@")
        if not at and not _is_version(place):
            time, place = place, ""
        collection, _, version = place.rpartition(":") if ":" in place or _is_version(place) else (place, "", "")
        spans = [
            each
            for each in self.spans
            if version in ("", *(f"v{of}" for of in each[0].versions))
            and collection in ("", each[0].version.spec.collection)
        ]
        if EQUALS in name:
            spans = [each for each in self.spans if each[0].version.slices == _plain(name)]
            time = ""
        if not spans:
            missing = f"collection as {quote(collection)}" if collection else "version"
            raise RequestError(f"{quote(name)}: no such {missing} has counts here; there are {self._versions()}")
        if len(spans) > 1:
            several = len({each[0].version.spec.collection for each in spans}) > 1
            kinds, remedy = ("collections", "@COLLECTION") if several else ("versions", "@ and one of ")
            raise RequestError(
                f"{quote(name)} is of several {kinds}; add {remedy}{'' if several else self._versions()}"
            )
        (mine,) = spans
        if not time:
            if self.every is None and mine[0].version.spec.window.period is not None:
                raise RequestError(f"{quote(name)}: sliding windows have reports in common; add --every")
            if len({number for span in mine for number in span.versions}) > 1:
                raise RequestError(f"{quote(name)} is of one version; leave out --pooled, or name a time")
            return total(mine)
        found = [span for span in mine if time in (span.period.name, iso(span.period.start))]
        found = found or [span for span in mine if _begins(span, time)]
        if len(found) != 1:
            names = [span.period.name for span in found or mine]
            some = ", ".join(names if len(names) <= _NAMED else [*names[: _NAMED - 1], "...", names[-1]])
            raise RequestError(f"{quote(name)} is the beginning of {len(found)} times; write one of: {some}")
        return found[0]

    def _versions(self) -> str:
        return ", ".join(f"v{each[0].version.spec.version} of {each[0].version.spec.collection}" for each in self.spans)


def _groups(version: Version, by: Sequence[str]) -> list[Group] | list[None]:
    slices = version.spec.slices
    if by and slices is None:
        raise RequestError(f"--by: the reports of {version.spec.collection} have no public attributes")
    return groups_by(slices, by) if by and slices is not None else [None]


def _plain(name: str) -> str:
    """Write the name of slices as ``Group`` does."""
    return ", ".join(part.strip() for part in name.split(","))


def _range(variables: Sequence[Shares], text: str) -> tuple[Shares, Range]:
    """Return the variable that a range is of, and its bins."""
    attribute, separator, rest = text.partition("=")
    named = [each for each in variables if each.attribute and separator and each.attribute == attribute]
    if named:
        return named[0], range_of(named[0], rest)
    if any(each.attribute for each in variables):
        raise RequestError(f"--range {quote(text)}: write ATTRIBUTE=LOW:HIGH for a record")
    return variables[0], range_of(variables[0], text)


def _is_version(name: str) -> bool:
    return name.startswith("v") and name[1:].isdecimal()


def _begins(span: Span, time: str) -> bool:
    return span.period.name.startswith(time) or iso(span.period.start).startswith(time)


def put(
    asked: Asked,
    wanted: Wanted,
    *,
    over: bool,
    compare: tuple[str, str] | None,
    correct: Correction,
    same_devices: bool,
    ranges: Sequence[str] = (),
    levels: Sequence[float] = (),
    tables: Sequence[WantedTable] = (),
    beside: Asked | None = None,
) -> Iterator[Answer]:
    """Yield the answers; RequestError if a name or a group is unknown, or the counts give no answer.

    The second time of ``compare`` is of ``beside`` if that is given. Without a question, all tables are the answer.
    """
    if over:
        return asked.over_time()
    if compare is not None:
        return asked.compare(*compare, wanted, correct, same_devices=same_devices, beside=beside)
    if ranges or levels:
        return asked.ranges(ranges, levels)
    return asked.sums(wanted) if wanted else asked.tables(tables)
