"""The tables that are published of a statistic."""

from uldp.mechanisms.inference.assumed_forgers import with_forgers
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table


def tables_of(decoder: Decoder, spec: CollectionSpec, statistic: Statistic, estimator: str) -> tuple[Table, ...]:
    """Return the tables that an estimator publishes: of enough reports, and with the forgers that the spec assumes."""
    tables = decoder.tables(statistic.cells, statistic.n, estimator)
    enough = tuple(table for table in tables if table.n >= spec.limits.min_reports)
    if spec.assume_forgers is None:
        return enough
    return tuple(with_forgers(table, decoder, spec.assume_forgers, statistic.cells, statistic.n) for table in enough)
