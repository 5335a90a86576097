"""The reader of container files knows its schemas in any spelling and its codecs, and bounds all that a file claims."""

import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cramjam
import fastavro
import numpy as np
import pytest

from tests.fuzz.container import MARKER, NAMES, TEXTS, deflate, write
from tests.fuzz.container_seeds import HOSTILE, RECORDS, encoded
from uldp.schemas.codec.blocks import MAX_BLOCK_BYTES, MAX_HEADER_BYTES, Container, ContainerError, open_file
from uldp.schemas.codec.inflate import check_codec, inflate
from uldp.schemas.framing import Schema, load_schema
from uldp.schemas.statistic import pack_cells

MESSAGES = encoded("message")
N = len(RECORDS["message"])


def opened(content: bytes) -> Container:
    return Container.open(io.BytesIO(content))


def header(text: bytes, **more: bytes) -> dict[bytes, bytes]:
    return {b"avro.schema": text} | {f"avro.{name}".encode(): value for name, value in more.items()}


def of_messages(*found: tuple[int, bytes], codec: bytes = b"null", **changes: Any) -> Container:
    return opened(write(header(TEXTS[0], codec=codec), found, **changes))


def written_by_fastavro(schema: Schema, records: list[dict[str, Any]], **options: Any) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, records, **options)
    return file.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("name", NAMES)
def test_records_of_the_reference_writer_are_read(name: str, codec: str) -> None:
    container = opened(written_by_fastavro(load_schema(name), RECORDS[name] * 3, codec=codec, sync_interval=100))
    assert (container.name, container.codec, container.current) == (name, codec, True)
    assert [*container.records()] == RECORDS[name] * 3


FIELDS = {
    "data": {"name": "data", "type": {"type": "bytes"}},
    "attributes": {
        "name": "attributes",
        "type": {"type": "map", "values": {"type": "string", "avro.java.string": "S"}},
    },
    "publish_time": {"name": "publish_time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
}


@pytest.mark.parametrize(
    "schema",
    [
        {"name": "uldp.Message", "type": "record", "fields": [*FIELDS.values()]},
        {"type": "record", "namespace": "uldp", "name": "Message", "aliases": ["M"], "fields": [*FIELDS.values()]},
    ],
)
def test_a_schema_in_another_spelling_is_known(schema: dict[str, Any]) -> None:
    container = opened(write(header(json.dumps(schema).encode()), [(N, MESSAGES)]))
    assert container.current
    assert [*container.records()] == RECORDS["message"]  # a time is a number, although the file calls it a timestamp


OTHERS = {
    "a field more": [*FIELDS.values(), {"name": "region", "type": "string"}],
    "a field less": [FIELDS["attributes"], FIELDS["publish_time"]],
    "another type": [FIELDS["data"], FIELDS["attributes"], {"name": "publish_time", "type": "int"}],
}


@pytest.mark.parametrize(
    "text",
    [
        *(
            json.dumps({"type": "record", "name": "uldp.Message", "fields": other}).encode()
            for other in OTHERS.values()
        ),
        json.dumps({"type": "record", "name": "uldp.\x1b[31m", "fields": []}).encode(),
        *HOSTILE.values(),
        b"",
        b"\xff",
        b"null",
        b'{"type": "record", "name": {}, "fields": 7}',
        b'{"type": {"type": {}}}',
        b'{"type": "enum", "name": "uldp.Message", "symbols": [[]]}',
    ],
)
def test_another_schema_is_refused(text: bytes) -> None:
    reason = r"^(holds records of a schema that uldp does not know|its header holds no schema of a record)"
    with pytest.raises(ContainerError, match=reason) as refused:
        opened(write(header(text), [(1, b"\0")]))
    assert str(refused.value).isprintable()


def test_fields_with_a_default_may_be_missing() -> None:
    schema = {"type": "record", "name": "uldp.Message", "fields": [FIELDS["data"], FIELDS["publish_time"]]}
    container = opened(write(header(json.dumps(schema).encode()), [(2, b"\2a\2\2b\4")]))
    assert not container.current
    assert [*container.records()] == [
        {"data": data, "attributes": {}, "publish_time": time} for data, time in ((b"a", 1), (b"b", 2))
    ]


@pytest.mark.parametrize("codec", [b"xz", b"bzip2", b"Snappy", b"Null", b"\xff\n"])
def test_another_codec_is_refused(codec: bytes) -> None:
    with pytest.raises(ContainerError, match="is compressed with ") as refused:
        of_messages(codec=codec)
    assert refused.value.remedy == "write it again with one of these codecs: null, deflate, snappy, zstandard"


def test_a_header_that_is_too_large_is_refused() -> None:
    with pytest.raises(ContainerError, match="the header takes more than"):
        opened(write(header(TEXTS[0], more=bytes(MAX_HEADER_BYTES)), []))


@pytest.mark.parametrize(
    ("found", "changes", "reason"),
    [
        ((N, MESSAGES), {"marker": MARKER[::-1]}, "does not end with the sync marker"),
        ((N, MESSAGES), {"size": 2**40}, "takes 1,099,511,627,[0-9]* bytes or more, the limit is 16,777,216"),
        ((N, MESSAGES), {"size": 99}, "it ends too early"),
        ((N, b""), {"size": -1}, "a length is negative"),
        ((N - 1, MESSAGES), {}, "bytes follow the last record"),
        ((N + 1, MESSAGES), {}, "a record is no value of uldp.Message"),
        ((2**34, MESSAGES), {}, "claims to hold 17,179,869,184 records"),
        ((-1, MESSAGES), {}, "claims to hold -1 records"),
        ((1, b""), {}, "a block of 0 bytes claims to hold 1 records"),
    ],
)
def test_a_block_that_claims_too_much_is_refused(found: tuple[int, bytes], changes: Any, reason: str) -> None:
    with pytest.raises(ContainerError, match=reason):
        list(of_messages(found, **changes).records())


def test_a_rest_of_a_checksum_is_no_harm() -> None:
    # Avro's own writer in Python cuts the first two bytes and the last one of zlib's.
    (block,) = of_messages((N, zlib.compress(MESSAGES)[2:-1]), codec=b"deflate").blocks()
    assert block == (N, MESSAGES)


def test_a_block_of_the_most_bytes_is_read() -> None:
    (block,) = of_messages((0, bytes(MAX_BLOCK_BYTES))).blocks()
    assert block == (0, bytes(MAX_BLOCK_BYTES))


def test_a_pane_of_a_large_domain_is_read() -> None:
    (record,) = RECORDS["statistic"]
    cells = pack_cells(np.full(MAX_BLOCK_BYTES // 4 + 1, 10**6))
    content = written_by_fastavro(load_schema("statistic"), [record | {"cells": cells}])
    assert len(content) > MAX_BLOCK_BYTES
    (read,) = opened(content).records()
    assert read["cells"] == cells


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(ContainerError, match="is a pipe or a device, not a file"):
            open_file(path)
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)


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
    with pytest.raises(ContainerError, match="bytes"):
        inflate(codec, STORE[codec](bytes(size)), BOUND)


@pytest.mark.parametrize("codec", STORE)
@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda _: b"no", lambda block: block[: len(block) // 2], lambda block: bytes(len(block))]
)
def test_a_damaged_block_is_refused(codec: str, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ContainerError):
        inflate(codec, damage(STORE[codec](BLOCK)), BOUND)


def test_a_claim_of_snappy_is_not_believed() -> None:
    with pytest.raises(ContainerError, match="4,294,967,295 bytes"):
        inflate("snappy", b"\xff\xff\xff\xff\x0f" + bytes(4), BOUND)
    with pytest.raises(ContainerError, match="does not have its checksum"):
        inflate("snappy", snappy(BLOCK)[:-1] + b"\0", BOUND)


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_a_codec_that_is_not_installed_names_the_extra(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(ContainerError, match=codec) as refused:
        check_codec(codec)
    assert "pip install 'uldp-stream[archives]" in refused.value.remedy
