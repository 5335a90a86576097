"""Each codec gives back what was stored, inflates no further than a bound, and refuses damage."""

import sys
import zlib
from collections.abc import Callable, Mapping

import cramjam
import pytest

from tests.fuzz.container import deflate
from uldp.schemas.codec.inflate import InflateError, MissingCodecError, TooLargeError, check_codec, inflate

BOUND = 1 << 20
BLOCK = b"abc" * 1000


def snappy(block: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4, "big")


def zstandard(block: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(block))


STORE: Mapping[str, Callable[[bytes], bytes]] = {"deflate": deflate, "snappy": snappy, "zstandard": zstandard}


@pytest.mark.parametrize("codec", STORE)
@pytest.mark.parametrize("block", [b"", BLOCK, bytes(BOUND)], ids=len)
def test_a_block_comes_back(codec: str, block: bytes) -> None:
    check_codec(codec)
    assert inflate(codec, STORE[codec](block), BOUND) == block


@pytest.mark.parametrize("codec", STORE)
@pytest.mark.parametrize("size", [BOUND + 1, 100 * BOUND])
def test_a_block_is_not_inflated_beyond_the_bound(codec: str, size: int) -> None:
    with pytest.raises(InflateError, match="bytes"):
        inflate(codec, STORE[codec](bytes(size)), BOUND)


@pytest.mark.parametrize("codec", STORE)
@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda _: b"no", lambda block: block[: len(block) // 2], lambda block: bytes(len(block))],
)
def test_a_damaged_block_is_refused(codec: str, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(InflateError):
        inflate(codec, damage(STORE[codec](BLOCK)), BOUND)


def test_a_claim_of_snappy_is_not_believed() -> None:
    with pytest.raises(TooLargeError, match="4,294,967,295 bytes"):
        inflate("snappy", b"\xff\xff\xff\xff\x0f" + bytes(4), BOUND)
    with pytest.raises(InflateError, match="does not have its checksum"):
        inflate("snappy", snappy(BLOCK)[:-1] + b"\0", BOUND)


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_a_codec_that_is_not_installed_names_the_extra(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingCodecError, match=r"pip install 'uldp-stream\[archives\]"):
        check_codec(codec)
