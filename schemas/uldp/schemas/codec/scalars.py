"""Single values of Avro's binary encoding, read from a block with bounds."""

_MAX_LONG_BITS = 64


def read_long(block: bytes, at: int) -> tuple[int, int]:
    """Read a long, and return it and the offset behind it.

    Raises:
        IndexError, ValueError: if the block ends before, or the number has more than 64 bits.
    """
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


def read_bytes(block: bytes, at: int) -> tuple[int, int]:
    """Read a length, and return where so many bytes start and end.

    Raises:
        IndexError, ValueError: if the block ends before.
    """
    size = block[at]
    at += 1
    if size < 0x80 and not size & 1:
        size >>= 1
    else:
        size, at = read_long(block, at - 1)
    end = at + size
    if not at <= end <= len(block):
        raise ValueError(f"a field cannot take {size:,} bytes")
    return at, end


def read_text(block: bytes, at: int) -> tuple[str, int]:
    """Read a string, and return it and the offset behind it.

    Raises:
        IndexError, ValueError: if the block ends before, or the bytes are no UTF-8.
    """
    start, end = read_bytes(block, at)
    return block[start:end].decode(), end


def read_entries(block: bytes, at: int) -> tuple[int, int]:
    """Read the beginning of a block of a map: how many entries it has, 0 at the map's end; and the offset behind it.

    Raises:
        IndexError, ValueError: if the block ends before.
    """
    entries, at = read_long(block, at)
    if entries < 0:  # then the size of the block follows
        _, at = read_long(block, at)
    return abs(entries), at
