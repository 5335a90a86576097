"""The tables of one estimate from several versions of a collection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
from uldp.mechanisms.decoders.table_of import share_tables, table_of
from uldp.mechanisms.laws.estimate import weighted
from uldp.mechanisms.pooling.versions import contradictions, pool, pooled_bayes
from uldp.mechanisms.protocol.decoder import Decoder, Pooling
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.table import Table, TableName


class VersionCounts(NamedTuple):
    """What a version of a collection counted: its decoder, the cells, and the reports; see ``Decoder.linear``."""

    decoder: Decoder
    cells: Counts
    n: int
    repeats: float = 0.0


@dataclass(frozen=True)
class PooledTables:
    """The tables of a pooled estimate."""

    tables: tuple[Table, ...]
    compared: int  # the number of estimates that the versions were compared in: of symbols, or of means
    contradictory: int  # the number of those in which two versions contradict each other; see ``contradictions``


def pooled_tables(versions: Sequence[VersionCounts]) -> PooledTables:
    """Estimate what the users of several versions hold: shares of values, a mean, or both of each attribute.

    There are one version or more, the newest last: its background is taken. Their values must be the same in the same
    order; epsilon, mechanisms and sensitive values may differ. ValueError if the versions estimate different
    quantities, or if cells do not fit.
    """
    for version in versions:
        version.decoder.check(version.cells, version.n)
    if _pooling(versions) is Pooling.VARIABLES:
        return _of_records(versions)
    parts = [decoder.linear(cells, n, repeats) for decoder, cells, n, repeats in versions]
    number = int(contradictions(parts).sum())
    if _pooling(versions) is Pooling.NUMBERS:
        mean = weighted(parts, mean_of_parts([version[:3] for version in versions]))
        table = table_of(TableName.MEAN, mean.values, mean, bounds=(-np.inf, np.inf))
        return PooledTables((table,), 1, number)
    newest, pooled = cast(PureDecoder, versions[-1].decoder), pool(cast(Sequence[ShareEstimate], parts))
    r_hat = pooled_bayes(pooled, len(newest.pum.tags))
    tables = share_tables(newest.pum, r_hat, pooled.mean, simultaneous=newest.simultaneous)
    return PooledTables(tables, len(r_hat), number)


def mean_of_parts(versions: Sequence[tuple[Decoder, Counts, int]]) -> Floats:
    """Return the weights of versions in their mean, (versions, m); RequestError if they cannot be pooled."""
    if _pooling(versions) is Pooling.SHARES:
        return pool([cast(ShareEstimate, decoder.linear(cells, n)) for decoder, cells, n in versions]).weights
    precisions = np.array([decoder.forecast(n) ** -2.0 for decoder, _, n in versions])
    return np.asarray(precisions / precisions.sum(axis=0))


def _pooling(versions: Sequence[tuple[Any, ...]]) -> Pooling:
    """Return how versions are pooled, or raise RequestError."""
    kind, *others = {version[0].pooling for version in versions}
    if others or kind is None:
        raise RequestError("the mechanisms of these versions cannot be pooled together; leave out --pooled")
    return cast(Pooling, kind)


def _of_records(versions: Sequence[VersionCounts]) -> PooledTables:
    """Pool each attribute alone, from the versions that counted reports of it."""
    of_attributes: dict[str, list[VersionCounts]] = {}
    for decoder, cells, n, repeats in versions:
        for part in decoder.variables(cells, n, ()):
            own = VersionCounts(part.decoder, part.cells, part.n, repeats)
            of_attributes.setdefault(part.name, []).append(own)
    pooled = {name: pooled_tables(counts) for name, counts in of_attributes.items()}
    tables = [[replace(table, of=(name,)) for table in each.tables] for name, each in pooled.items()]
    return PooledTables(
        tuple(chain.from_iterable(tables)),
        sum(each.compared for each in pooled.values()),
        sum(each.contradictory for each in pooled.values()),
    )
