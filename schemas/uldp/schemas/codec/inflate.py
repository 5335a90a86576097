"""The codecs of container files: a block is inflated only as far as a bound, whatever it claims."""

import zlib
from collections.abc import Callable
from types import ModuleType

from uldp.schemas.errors import DataError
from uldp.schemas.extras import install

_RAW_DEFLATE = -15
_SNAPPY_CHECKSUM_BYTES = 4
_MAX_VARINT_BYTES = 5


class ContainerError(DataError):
    """A file that is no container of known records.

    The ``remedy`` is for its user; it is empty if the file is damaged, because it depends on the use of the file then.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.remedy = remedy


def too_large(size: int, bound: int) -> ContainerError:
    """Return the error of a block of at least ``size`` bytes."""
    return ContainerError(
        f"a block takes {size:,} bytes or more, the limit is {bound:,}", "write it again in smaller blocks"
    )


def inflate(codec: str, block: bytes, bound: int) -> bytes:
    """Return an inflated block; ContainerError if it is damaged, larger than the bound, or as of ``check_codec``."""
    return CODECS[codec](block, bound)


def check_codec(codec: str) -> None:
    """Check that the library of a codec is installed; ContainerError if it is not."""
    if codec in ("snappy", "zstandard"):
        _cramjam(codec)


def _deflated(block: bytes, bound: int) -> bytes:
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    try:
        inflated = inflater.decompress(block, bound + 1)
    except zlib.error as error:
        raise ContainerError("a block cannot be inflated") from error
    if len(inflated) > bound:
        raise too_large(len(inflated), bound)
    if not inflater.eof:
        raise ContainerError("a block cannot be inflated: it ends too early")
    # Some writers leave a part of zlib's checksum behind the deflated bytes, so the rest of the block is not looked at.
    return inflated


def _snappy(block: bytes, bound: int) -> bytes:
    """Inflate Snappy's raw format, behind which Avro has a checksum of the inflated bytes."""
    cramjam = _cramjam("snappy")
    packed, checksum = block[:-_SNAPPY_CHECKSUM_BYTES], block[-_SNAPPY_CHECKSUM_BYTES:]
    size = _snappy_size(packed)
    if size > bound:
        raise too_large(size, bound)
    try:
        inflated = bytes(cramjam.snappy.decompress_raw(packed))
    except cramjam.DecompressionError as error:
        raise ContainerError("a block cannot be inflated") from error
    if zlib.crc32(inflated).to_bytes(_SNAPPY_CHECKSUM_BYTES, "big") != checksum:
        raise ContainerError("a block does not have its checksum")
    return inflated


def _snappy_size(packed: bytes) -> int:
    """Return the size that a block claims to have when inflated: a varint at its beginning."""
    size = 0
    for index, byte in enumerate(packed[:_MAX_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return size
    raise ContainerError("a block cannot be inflated")


def _zstandard(block: bytes, bound: int) -> bytes:
    cramjam = _cramjam("zstandard")
    inflated = bytearray(bound)  # the system gives memory only to the part that is written to
    try:
        size = cramjam.zstd.decompress_into(block, inflated)
    except cramjam.DecompressionError as error:
        raise ContainerError(f"a block cannot be inflated into {bound:,} bytes: {error}") from error
    return bytes(memoryview(inflated)[:size])


def _cramjam(codec: str) -> ModuleType:
    try:
        import cramjam
    except ImportError:
        remedy = f"needs cramjam; install it: {install('archives')}"
        raise ContainerError(f"is compressed with {codec}", remedy) from None
    module: ModuleType = cramjam
    return module


#: By the names in headers, how a block is inflated.
CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda block, bound: block,
    "deflate": _deflated,
    "snappy": _snappy,
    "zstandard": _zstandard,
}
