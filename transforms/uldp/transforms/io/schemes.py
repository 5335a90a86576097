"""Where the connector of a URI's scheme is: a folder beside this module, or an entry point of ``uldp.endpoints``."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint

from uldp.schemas.extras import with_packages

#: The group of entry points.
GROUP = "uldp.endpoints"

#: The function that makes an endpoint of a URI; see ``uldp.transforms.io.endpoints``.
_OWN = {
    "bigquery": "uldp.transforms.io.bigquery.endpoint:parse",
    "duckdb": "uldp.transforms.io.duckdb.endpoint:parse",
    "kafka": "uldp.transforms.io.kafka.endpoint:parse",
    "parquet": "uldp.transforms.io.parquet.endpoint:parse",
    "postgresql": "uldp.transforms.io.postgresql.endpoint:parse",
    "pubsub": "uldp.transforms.io.pubsub.endpoint:parse",
}


@cache
def connectors() -> Mapping[str, EntryPoint]:
    """Return where the connector of each scheme is; see ``with_packages``."""
    return with_packages(GROUP, _OWN)


def scheme_of(uri: str) -> str | None:
    """Return the scheme of a connector's URI, or None if the text names files.

    >>> scheme_of("kafka:broker:9092/reports"), scheme_of("gs://bucket/archive"), scheme_of("stream")
    ('kafka', None, None)
    """
    scheme = uri.partition(":")[0]
    return scheme if scheme in connectors() and scheme != uri else None
