"""Single values of Avro's binary encoding, read from a block with bounds."""

_MAX_LONG_BITS = 64


def read_long(block: bytes, at: int) -> tuple[int, int]:
    """Read a long; return it and the offset behind; IndexError or ValueError if it is cut or has over 64 bits."""
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
    """Read a length; return where so many bytes start and end; IndexError or ValueError if they are cut."""
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
    """Read a string; return it and the offset behind; IndexError or ValueError if it is cut, or no UTF-8."""
    start, end = read_bytes(block, at)
    return block[start:end].decode(), end


def read_entries(block: bytes, at: int) -> tuple[int, int]:
    """Read the number of entries of a block of a map, 0 at its end; return the offset too; errors as ``read_long``."""
    entries, at = read_long(block, at)
    if entries < 0:  # then the size of the block follows
        _, at = read_long(block, at)
    return abs(entries), at
