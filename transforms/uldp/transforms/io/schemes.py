"""Where the connector of each scheme of a URI is. A connector is imported when a URI first names it.

A connector of the project is a folder beside this module, and a line here. Another package names its connectors as
entry points of the group ``uldp.endpoints``, each under its scheme.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

#: The group of entry points.
GROUP = "uldp.endpoints"

#: The function that makes an endpoint of a URI; see ``uldp.transforms.io.endpoints``.
_OWN = {
    "bigquery": "uldp.transforms.io.bigquery.endpoint:parse",
    "kafka": "uldp.transforms.io.kafka.endpoint:parse",
    "pubsub": "uldp.transforms.io.pubsub.endpoint:parse",
}


@cache
def connectors() -> Mapping[str, EntryPoint]:
    """Return where the connector of each scheme is: first the project's own, then those of other packages.

    Raises:
        ValueError: if a package takes the scheme of another connector.
    """
    found = {scheme: EntryPoint(scheme, parse, GROUP) for scheme, parse in _OWN.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if point.name in found:
            raise ValueError(
                f"two connectors have the scheme {point.name}, {found[point.name].value} and {point.value}; uninstall"
                " the package of one"
            )
        found[point.name] = point
    return found


def scheme_of(uri: str) -> str | None:
    """Return the scheme of a connector's URI, or None if the text names files.

    >>> scheme_of("kafka:broker:9092/reports"), scheme_of("gs://bucket/archive"), scheme_of("stream")
    ('kafka', None, None)
    """
    scheme = uri.partition(":")[0]
    return scheme if scheme in connectors() and scheme != uri else None
