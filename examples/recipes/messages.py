"""The bytes of a report: docs/client/bytes.md."""


def varint(number: int) -> bytes:
    """Encode a number of 0 or more as Avro does."""
    number, out = number << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def encode(collection: str, version: int, report_id: bytes, event_time: int, payload: int | bytes) -> bytes:
    """Encode a report."""
    name = collection.encode()
    head = bytes.fromhex("c301e6a3dbfe76e5d390") + varint(len(name)) + name + varint(version)
    kind = b"\x00" + varint(payload) if isinstance(payload, int) else b"\x02" + varint(len(payload)) + payload
    return head + report_id + varint(event_time) + kind
