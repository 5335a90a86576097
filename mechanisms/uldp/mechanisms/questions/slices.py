"""Counts of some slices as those of a collection without slices, so that each question is one about slices too."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from uldp.mechanisms.questions.span import Version
from uldp.schemas.errors import RequestError
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.slices import EQUALS, Slices
from uldp.schemas.statistic import Statistic


@dataclass(frozen=True)
class Group:
    """Slices whose counts are added."""

    name: str  # the public attributes that they share, as ``os=ios, version=1.0``; empty for all slices
    numbers: tuple[int, ...]  # their numbers, ascending


def group_of(slices: Slices, name: str) -> Group:
    """Return the slices of a name as ``os=ios,version=1.0``; RequestError if there is no such attribute or value."""
    given = {}
    for part in name.split(","):
        attribute, equals, value = part.strip().partition(EQUALS)
        if not equals:
            raise RequestError(f"{quote(name)}: write ATTRIBUTE=VALUE, with commas between several")
        given[attribute] = value
    try:
        numbers = tuple(slices.of(given))
    except ValueError as error:
        raise RequestError(str(error)) from error
    return Group(", ".join(f"{attribute}{EQUALS}{value}" for attribute, value in given.items()), numbers)


def groups_by(slices: Slices, wanted: Sequence[str]) -> list[Group]:
    """Return the groups of the values of public attributes, as ``os``, among ``os=ios``; RequestError if unknown."""
    choices = []
    for each in dict.fromkeys(part.strip() for text in wanted for part in text.split(",")):
        if EQUALS in each:
            choices.append([each])
        elif each in slices.values:
            choices.append([f"{each}{EQUALS}{value}" for value in slices.values[each]])
        else:
            raise RequestError(f"--by {quote(each)}: no such public attribute; by has {', '.join(slices.values)}")
    return [group_of(slices, ",".join(parts)) for parts in product(*choices)]


def version_of(version: Version, group: Group | None = None) -> Version:
    """Return a version without slices, for the counts of some slices, or of all; the same if it has none."""
    if version.spec.by is None:
        return version
    return Version(version.spec.whole, "" if group is None else group.name, version)


def counts_of(version: Version, statistics: Iterable[Statistic], group: Group | None = None) -> Iterator[Statistic]:
    """Yield the counts of some slices, or all, in each window; windows with few reports in them are apart."""
    if version.spec.by is None:
        yield from statistics
        return
    least = version.spec.limits.min_reports
    for statistic in statistics:
        if not statistic.n:
            yield statistic
            continue
        every = version.protocol.mechanism.split_cells(statistic.cells)
        chosen = every if group is None else [every[number] for number in group.numbers]
        cells, n = np.sum([own for own, _ in chosen], axis=0), sum(reports for _, reports in chosen)
        accounting = statistic.accounting if group is None else Accounting(n, n)
        few = {Flag.FEW_REPORTS} if 0 < n < least else set[Flag]()
        flags = (*statistic.flags, *few.difference(statistic.flags))
        yield replace(statistic, cells=cells if n else np.zeros(1, np.int64), accounting=accounting, flags=flags)
