"""The framing of a schema registry, replaced by the header of Avro's single-object encoding.

A registry's serializer writes a zero byte and the id of the writer's schema, 4 bytes in big-endian order, before the
same body. No registry is asked, and none gives a schema: the operator says which ids mean the schemas of this package.
"""

from collections.abc import Mapping

import numpy as np

from uldp.schemas.codec.packed import Bodies
from uldp.schemas.errors import RequestError
from uldp.schemas.framing import HEADER_SIZE, shipped_header

#: The short names of the schemas that an id may mean.
REGISTRY_SCHEMAS = ("report", "report_batch")
MAX_REGISTRY_ID = (1 << 32) - 1
#: The bytes of the framing, and by how many more the header has.
_FRAMING_SIZE = 5
_GROWTH = HEADER_SIZE - _FRAMING_SIZE


def check_registry_id(number: object, schema: object) -> None:
    """Raise ValueError if an id has more than 4 bytes, or what it means is none of ``REGISTRY_SCHEMAS``."""
    if not isinstance(number, int) or not 0 <= number <= MAX_REGISTRY_ID:
        raise RequestError(
            f"id {number!r} must be a whole number from 0 to {MAX_REGISTRY_ID}, as the registry shows it"
        )
    if schema not in REGISTRY_SCHEMAS:
        raise RequestError(
            f"schema {schema!r} must be {' or '.join(REGISTRY_SCHEMAS)}; remove the ids of other schemas"
        )


class RegistryIds:
    """What the ids of a schema registry mean: the short name of a schema each; see ``check_registry_id``."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        for number, schema in schemas.items():
            check_registry_id(number, schema)
        self._numbers = np.array(sorted(schemas), dtype=np.uint32)
        headers = b"".join(shipped_header(schemas[number]) for number in sorted(schemas))
        self._headers = np.frombuffer(headers, dtype=np.uint8).reshape(-1, HEADER_SIZE)

    def reframed(self, bodies: Bodies) -> Bodies:
        """Return messages with the header of a schema for each framing whose id means one; others as they are."""
        if not len(self._numbers):
            return bodies
        buffer = np.frombuffer(bodies.buffer, dtype=np.uint8)
        starts = np.unique(bodies.starts[bodies.ends - bodies.starts >= _FRAMING_SIZE])
        starts = starts[buffer[starts] == 0]
        if not len(starts):
            return bodies
        numbers = buffer[starts[:, None] + np.arange(1, _FRAMING_SIZE)].view(">u4").ravel()
        rows = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        known = self._numbers[rows] == numbers
        if not known.any():
            return bodies
        starts, headers = starts[known], self._headers[rows[known]]
        grown = np.insert(buffer, np.repeat(starts, _GROWTH), 0)
        grown[(starts + _GROWTH * np.arange(len(starts)))[:, None] + np.arange(HEADER_SIZE)] = headers
        moved = (at + _GROWTH * np.searchsorted(starts, at) for at in (bodies.starts, bodies.ends))
        return Bodies(grown.tobytes(), *moved)
