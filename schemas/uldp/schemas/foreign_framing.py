"""What a message is that has no header of the single-object encoding: a hint for who operates the client.

A hint is a guess from the first bytes. Nothing is unpacked, and no message is counted because of a hint.
"""

import re

#: The body of a report begins with the length and the name of its collection; 64 characters take a second byte.
_BODY = re.compile(rb"(?:([\x02-\x7e])|\x80\x01)([a-z0-9-]{1,64})")
_COMPRESSED = " compression; send the bytes as they were, and let the transport compress"
#: What other formats begin with. JSON and text come last, because any bytes may be text.
_BEGINNINGS: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (rb"Obj\x01", "an Avro container file; send each of its records as a message"),
        (rb"\x1f\x8b", f"gzip{_COMPRESSED}"),
        (rb"\x28\xb5\x2f\xfd", f"zstandard{_COMPRESSED}"),
        (rb"\x04\x22\x4d\x18", f"lz4{_COMPRESSED}"),
        (rb"\xff\x06\x00\x00sNaPpY", f"snappy{_COMPRESSED}"),
        (rb"\x78[\x01\x5e\x9c\xda]", f"zlib{_COMPRESSED}"),
        (rb'"?ww[EFGH]', "a message as text in base64; send its bytes"),
        (rb'"?(?i:c301)[0-9a-fA-F]', "a message as text in hexadecimal; send its bytes"),
        (rb'\s*[{\["]', "JSON; send Avro's binary encoding"),
    )
)


def registry_id(message: bytes) -> tuple[int, int] | None:
    """Return the schema id of a message in a schema registry's framing, and the bytes that the id has.

    The framing is a zero byte, the id in big-endian order and the body. Confluent's ids have 4 bytes, and Apicurio's 8.
    A message is only taken for one if its body begins as a report does.
    """
    if message[:1] != b"\0":
        return None
    for size in (4, 8):
        if (number := int.from_bytes(message[1 : 1 + size])) and _name_end(message[1 + size :]):
            return number, size
    return None


def foreign_hint(message: bytes) -> str:
    """Return a hint with a remedy, or an empty string if the message looks like nothing known.

    >>> foreign_hint(b'{"collection": "home"}')
    "; it looks like JSON; send Avro's binary encoding"
    """
    if _name_end(message):
        return "; it looks like a body without its header; send the 10 bytes of the header first"
    found = next((words for pattern, words in _BEGINNINGS if pattern.match(message)), None)
    return "" if found is None else f"; it looks like {found}"


def registry_beginning(message: bytes) -> bytes:
    """Return the bytes by which ``registry_id`` knows a message, to the end of a name; ValueError if it does not."""
    if (found := registry_id(message)) is None:
        raise ValueError("not a message of a schema registry")
    _, size = found
    return message[: 1 + size + _name_end(message[1 + size :])]


def _name_end(message: bytes) -> int:
    """Return where the name of a collection ends with which the body of a report begins; 0 if there is no name."""
    if (match := _BODY.match(message)) is None:
        return 0
    size = match[1][0] >> 1 if match[1] else 64
    named = (match[1] is None or not match[1][0] & 1) and len(match[2]) >= size
    return match.start(2) + size if named else 0
