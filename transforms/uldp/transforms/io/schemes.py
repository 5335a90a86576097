"""The registry of connectors: a new connector adds a folder beside this module, and a line here."""

#: By the scheme of a URI, the module whose function ``parse`` makes its endpoint; see ``uldp.transforms.io.endpoints``.
SCHEMES = {
    "bigquery": "uldp.transforms.io.bigquery.endpoint",
    "kafka": "uldp.transforms.io.kafka.endpoint",
    "pubsub": "uldp.transforms.io.pubsub.endpoint",
}


def scheme_of(uri: str) -> str | None:
    """Return the scheme of a connector's URI, or None if the text names files.

    >>> scheme_of("kafka:broker:9092/reports"), scheme_of("gs://bucket/archive"), scheme_of("stream")
    ('kafka', None, None)
    """
    scheme = uri.partition(":")[0]
    return scheme if scheme in SCHEMES and scheme != uri else None
