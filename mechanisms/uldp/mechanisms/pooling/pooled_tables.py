"""The tables of one estimate from several versions of a collection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.share_tables import share_tables
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.numbers.number import NumberDecoder
from uldp.mechanisms.pooling.pooled_bayes import pooled_bayes
from uldp.mechanisms.pooling.versions import WeightedLinear, contradictions, pool
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.arrays import Counts
from uldp.schemas.errors import RequestError
from uldp.schemas.table import INTERVAL_LEVEL, Basis, Table, TableName


class VersionCounts(NamedTuple):
    """What a version of a collection counted in a window: its decoder, the cells, and the number of reports."""

    decoder: Decoder
    cells: Counts
    n: int


@dataclass(frozen=True)
class PooledTables:
    """The tables of a pooled estimate.

    Attributes:
        tables: The tables.
        compared: The number of estimates that the versions were compared in: of symbols, or of means.
        contradictory: The number of those in which two versions contradict each other; see ``contradictions``.
    """

    tables: tuple[Table, ...]
    compared: int
    contradictory: int


def pooled_tables(versions: Sequence[VersionCounts]) -> PooledTables:
    """Estimate what the users of several versions hold: shares of values, a mean, or both of each attribute.

    Args:
        versions: The versions, one or more, the newest last: its background is taken. Their values must be the same in
            the same order; epsilon, mechanisms and sensitive values may differ.

    Raises:
        ValueError: if the versions estimate different quantities, or if cells do not fit.
    """
    for version in versions:
        version.decoder.check(version.cells, version.n)
    decoders = [version.decoder for version in versions]
    if all(isinstance(decoder, PureDecoder) for decoder in decoders):
        return _of_shares(versions)
    if all(isinstance(decoder, NumberDecoder) for decoder in decoders):
        return _of_means(versions)
    if all(isinstance(decoder, StrataDecoder) for decoder in decoders):
        return _of_records(versions)
    raise RequestError("their mechanisms cannot be pooled together")


def _of_shares(versions: Sequence[VersionCounts]) -> PooledTables:
    """Pool shares over Z, and spread the tags by the newest version's background."""
    decoders = [decoder for decoder, _, _ in versions if isinstance(decoder, PureDecoder)]
    parts = [decoder.linear(cells, n) for decoder, (_, cells, n) in zip(decoders, versions, strict=True)]
    mean, nearest = pool(parts)
    newest = decoders[-1]
    r_hat = pooled_bayes(mean, nearest, len(newest.pum.tags))
    tables = share_tables(newest.pum, r_hat, mean, basis=Basis.NORMAL, simultaneous=newest.simultaneous)
    return PooledTables(tables, len(r_hat), int(contradictions(parts).sum()))


def _of_means(versions: Sequence[VersionCounts]) -> PooledTables:
    """Pool means by the inverse of the variances that the decoders forecast, which depend on no counts."""
    parts = [version.decoder.linear(version.cells, version.n) for version in versions]
    precisions = np.array([version.decoder.forecast(version.n) ** -2.0 for version in versions])
    mean = WeightedLinear(parts, precisions / precisions.sum(axis=0))
    low, high = mean.interval(INTERVAL_LEVEL)
    table = Table(
        TableName.MEAN,
        mean.values,
        np.sqrt(mean.variance),
        int(mean.n[0]),
        shape=(1,),
        unbiased=mean.values,
        low=low,
        high=high,
        level=INTERVAL_LEVEL,
        basis=Basis.NORMAL,
    )
    return PooledTables((table,), 1, int(contradictions(parts).sum()))


def _of_records(versions: Sequence[VersionCounts]) -> PooledTables:
    """Pool each attribute alone, from the versions that counted reports of it."""
    of_attributes: dict[str, list[VersionCounts]] = {}
    for decoder, cells, n in versions:
        assert isinstance(decoder, StrataDecoder)
        for part in decoder.parts(cells, n):
            if part.n:
                of_attributes.setdefault(part.name, []).append(VersionCounts(part.decoder, part.cells, part.n))
    pooled = {name: pooled_tables(counts) for name, counts in of_attributes.items()}
    tables = [[replace(table, of=(name,)) for table in each.tables] for name, each in pooled.items()]
    return PooledTables(
        tuple(chain.from_iterable(tables)),
        sum(each.compared for each in pooled.values()),
        sum(each.contradictory for each in pooled.values()),
    )
