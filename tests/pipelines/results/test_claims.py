"""Files of results that claim to hold more than they have: they are refused before the claim takes memory."""

import io
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.pane_files import statistic_file
from tests.pipelines.results.samples import SPEC, at, save, statistic_of
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.codec.container import write_header
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import MAX_CELLS, counts_to_avro
from uldp.transforms.io.results import pane_files

MARKER = bytes(16)


def varint(number: int) -> bytes:
    zigzag, out = number << 1, bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def container(schema: str, records: int, block: bytes, *, size: int | None = None, codec: str = "null") -> bytes:
    """A file with one block, which claims to take ``size`` bytes."""
    file = io.BytesIO()
    write_header(file, schema, MARKER, {} if schema != "statistic" else header(min(records, 20_000)), codec)
    return file.getvalue() + varint(records) + varint(len(block) if size is None else size) + block + MARKER


def encoded(value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, load_schema("statistic"), value)
    return out.getvalue()


def claiming(cells: int) -> bytes:
    """A statistic of so many cells, all of them 0."""
    packed = {"size": cells, "itemsize": 1, "indices": b"", "values": b""}
    return encoded(statistic_of(at(0)).to_avro() | {"cells": packed})


def header(panes: int) -> dict[str, str]:
    """The entry of a header that has the headers of so many panes, signed as a job does."""
    bare = encoded(counts_to_avro(PaneHeader(**statistic_of(at(0)).header())))
    return {pane_files._KEY: pane_files._stored(panes * [bare], MARKER)}


def deflated(block: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(block) + compressor.flush()


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "cells": (
        lambda: container("statistic", 1, claiming(MAX_CELLS)),
        "claims 33,554,432 cells, more than the 4 of",
    ),
    "2^40 cells": (lambda: container("statistic", 1, claiming(1 << 40)), "claims 1,099,511,627,776 cells, more than"),
    "panes": (
        lambda: container("statistic", 99, 99 * claiming(4)),
        "its panes are of other windows, collections or",
    ),
    "deflated panes": (
        lambda: container("statistic", 50_000, deflated(50_000 * claiming(4)), codec="deflate"),
        "the headers of its panes are too many",
    ),
    "gigabytes deflated": (
        lambda: container("statistic", 1, deflated(bytes(1 << 26)), codec="deflate"),
        "a block takes 16,777,217 bytes or more, the limit is 16,777,216",
    ),
    "a large block": (lambda: container("statistic", 1, b"", size=1 << 30), "it ends too early"),
    "too large a block": (lambda: container("statistic", 1, b"", size=1 << 40), "the limit is 1,073,741,824"),
    "records": (lambda: container("statistic", 1 << 40, claiming(4)), "the headers of its panes are too many"),
}


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(Path("out"), at(0), at(48))  # compact joins windows that are a day older than the newest
    (spec := Path("out/specs/c-v1/spec.yaml")).parent.mkdir(parents=True)
    spec.write_text(SPEC, encoding="utf-8")
    return Path("out")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_claim_is_refused_before_it_takes_memory(name: str, out: Path) -> None:
    make, reason = HOSTILE[name]
    (path := out / statistic_file(statistic_of(at(0)))[0]).write_bytes(make())
    ResultsFolder(out, lambda error: None).statistics()  # what Python and NumPy keep of a first time
    damaged: list[ResultsError] = []
    tracemalloc.start()
    panes = ResultsFolder(out, damaged.append).panes()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (line,) = map(str, damaged)
    assert line.startswith(f"{path}: damaged, or not an Avro file of schema statistic (")
    assert reason in line
    assert line.endswith("remove it and run its job again")
    assert len(panes) == 1  # of the other window
    assert peak < 50 << 20


def test_a_large_spec_may_have_as_many_cells_as_it_says(out: Path) -> None:
    name, content = statistic_file(statistic_of(at(0)))
    (out / "specs/c-v1/spec.yaml").write_text(
        SPEC.replace("{labels: [red, green, blue]}", "{size: 5000}").replace("[red]", "[1]"), encoding="utf-8"
    )
    for cells, read in ((5001, 2), (5002, 1)):  # one is the tag
        (out / name).write_bytes(container("statistic", 1, claiming(cells)))
        assert len(ResultsFolder(out, lambda error: None).panes()) == read
    (out / name).write_bytes(content)
    assert len(ResultsFolder(out).panes()) == 2
