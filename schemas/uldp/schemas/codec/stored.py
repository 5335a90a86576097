"""Fast decoding of stored messages: the records of ``message.avsc`` in a block of a container file, one by one.

A record is a length and the data, the attributes as a map, and the publish time (see ``message.avsc``). fastavro is the
reference; it takes longer, because it makes a dict of each record.
"""

import struct
from collections.abc import Iterator

from uldp.schemas.codec.blocks import ContainerError, check_end
from uldp.schemas.records import NO_ATTRIBUTES, Message

#: As a varint, a time from 1971 to 2039 takes 6 bytes: the first five have the high bit, and the sixth has not.
_MORE, _SIX_BYTES = 0x8080_8080_8080, 0x0080_8080_8080
_WORD = struct.Struct("<Q")
_MAX_LONG_BITS = 64


def decode_messages(records: int, block: bytes, file: str, first: int) -> Iterator[Message]:
    """Yield the messages of a block, one by one.

    Args:
        records: The number of messages in the block.
        block: Their records, inflated.
        file: The name of the file, for the position of each message in its source.
        first: The number of messages in the file before this block.

    Raises:
        ContainerError: during iteration, if the block is not the concatenation of so many records.
    """
    word_at = _WORD.unpack_from
    last_word = len(block) - _WORD.size
    at = 0
    try:
        for number in range(first, first + records):
            size = block[at]
            if size < 0x80 and not size & 1:  # what _read_bytes does, for most messages
                start = at + 1
                at = start + (size >> 1)
                data = block[start:at]
            else:
                data, at = _read_bytes(block, at)
            attributes = NO_ATTRIBUTES
            if block[at]:
                attributes, at = _read_map(block, at)
            else:
                at += 1
            word = word_at(block, at)[0] if at <= last_word else 0
            if word & _MORE == _SIX_BYTES:
                at += 6
                time = (
                    word & 0x7F
                    | word >> 1 & 0x7F << 7
                    | word >> 2 & 0x7F << 14
                    | word >> 3 & 0x7F << 21
                    | word >> 4 & 0x7F << 28
                    | word >> 5 & 0x7F << 35
                )
                time = (time >> 1) ^ -(time & 1)
            else:
                time, at = _read_long(block, at)
            yield Message(data, time, attributes, f"{file}:{number}")
    except (IndexError, ValueError) as error:
        raise ContainerError(f"a record is no message: {error}") from error
    check_end(at, block)


def _read_long(block: bytes, at: int) -> tuple[int, int]:
    """Read a long, and return it and the offset behind it."""
    value = block[at]
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), at + 1
    value = shift = 0
    while shift < _MAX_LONG_BITS:
        byte = block[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> _MAX_LONG_BITS:
                break
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise ValueError("a number has more than 64 bits")


def _read_bytes(block: bytes, at: int) -> tuple[bytes, int]:
    """Read a length and so many bytes, and return these and the offset behind them, at which another byte must be."""
    size = block[at]
    at += 1
    if size < 0x80 and not size & 1:
        size >>= 1
    else:
        size, at = _read_long(block, at - 1)
    end = at + size
    if not at <= end < len(block):
        raise ValueError(f"a field cannot take {size:,} bytes")
    return block[at:end], end


def _read_map(block: bytes, at: int) -> tuple[dict[str, str], int]:
    """Read a map: blocks of entries, each with the number of its entries."""
    found: dict[str, str] = {}
    while entries := block[at]:
        if entries < 0x80 and not entries & 1:
            entries >>= 1
            at += 1
        else:
            entries, at = _read_long(block, at)
            if not entries:  # a zero in more bytes than one
                return found, at
            if entries < 0:  # then the size of the block follows
                _, at = _read_long(block, at)
        for _ in range(abs(entries)):
            key, at = _read_bytes(block, at)
            value, at = _read_bytes(block, at)
            found[key.decode()] = value.decode()
    return found, at + 1
