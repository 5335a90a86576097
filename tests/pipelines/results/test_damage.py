"""Files of results that are damaged or forged, or that claim more than they hold: refused before that takes memory."""

import io
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.build import HOUR, START
from tests.fuzz.container import MARKER, deflate, write_long
from tests.pane_files import estimate_file, forged_file, statistic_file
from tests.pane_files import save as save_file
from tests.pipelines.results.samples import COUNTS, ESTIMATE, SPEC, SPECS, at, folder_of, hours, save, statistic_of
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.json_lines import to_json
from uldp.pipelines.results.text import estimate_text
from uldp.schemas.codec.container import write_header
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import PaneHeader
from uldp.schemas.rows import Rows
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import MAX_CELLS, counts_to_avro
from uldp.transforms.io.results import pane_files
from uldp.transforms.io.results.names import window_name


def floats(*values: float) -> bytes:
    return np.array(values, dtype="<f8").tobytes()


def share(**forged: object) -> dict[str, Any]:
    """The tables of an estimate, with forged fields in the shares."""
    first, *others = ESTIMATE.to_avro()["tables"]
    return {"tables": [first | forged, *others]}


class TestDamage:
    """A damaged file hides its window and no other."""

    def damage(self, out: Path, kind: str, hour: int, change: Callable[[bytes], bytes]) -> Path:
        start = window_name(*at(hour).key).partition("/")[2].partition("--")[0]
        path = min((out / kind).glob(f"*.{start}--*.avro"))
        path.write_bytes(change(path.read_bytes()))
        return path

    @pytest.mark.parametrize(
        "forged",
        [
            {"window_end": 2**62},
            {"window_start": START + 2 * HOUR},
            {"collection": "other"},
            {"estimator": "em"},
            {"accounting": {"received": 107, "counted": -100, "duplicate": 4, "late": 2, "rejected": 1, "missing": 0}},
            {"accounting": {"received": 107, "counted": 100, "duplicate": 4, "late": 2, "rejected": 1, "missing": -1}},
            {"accounting": {"received": 0, "counted": 0, "duplicate": 0, "late": 0, "rejected": 0, "missing": 0}},
            {"signals": COUNTS.signals.to_avro() | {"past": [0] * 5000}},
            {"tables": []},
            {"tables": ESTIMATE.to_avro()["tables"] * 2},
            share(values=floats(np.nan, 1, 1)),
            share(values=floats(1, 0)),
            share(values=b"", stderr=b"", shape=[0]),
            share(stderr=floats(-1, 1, 1)),
            share(values=floats(1e300, 1, 1)),
            share(shape=[2, 2]),
            share(keys=["a", "b"]),
            share(low=floats(0, 0, 0)),
            share(basis="exact"),
            share(low=floats(0, 0), high=floats(1, 1), basis="normal"),
            share(level=1.0),
            share(n=101),
            share(name="shares"),
        ],
        ids=str,
    )
    def test_what_no_job_writes_is_damage(self, tmp_path: Path, forged: dict[str, Any]) -> None:
        save(tmp_path, at(0), at(1))
        save_file(tmp_path, forged_file(at(1), forged))
        damaged: list[ResultsError] = []
        estimates, *_ = folder_of(tmp_path, damaged.append).current()
        assert (hours(estimates), len(damaged)) == ([0], 1)

    @pytest.mark.parametrize(
        "forged",
        [
            {"size": 5},
            {"size": -1},
            {"size": 1 << 40, "indices": b""},
            {"itemsize": 3},
            {"values": b""},
            {"size": 3, "indices": b"\3\0\0\0", "values": b"\1"},
            {"indices": b"\1\0\0\0\0\0\0\0", "values": b"\1\1"},
            {"indices": b"\1\0\0\0", "values": b"\1\1"},
            {"itemsize": 8, "values": np.array([101 << 23, 0, 0, 0]).tobytes()},
            {"itemsize": 8, "values": np.array([-(2**63), 0, 0, 0]).tobytes()},
        ],
        ids=str,
    )
    def test_cells_that_no_job_writes_are_damage(self, tmp_path: Path, forged: dict[str, Any]) -> None:
        save(tmp_path, at(0), at(1))
        cells = statistic_of(at(1)).to_avro()["cells"]
        save_file(tmp_path, forged_file(statistic_of(at(1)), {"cells": cells | forged}))
        damaged: list[ResultsError] = []
        found = folder_of(tmp_path, damaged.append).current()
        assert (hours(found.estimates), len(damaged)) == ([0, 1], 1)
        assert [found.statistic_of(each) is None for each in found.estimates] == [False, True]

    @given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
    def test_any_bytes_are_shown_or_named(
        self, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
    ) -> None:
        out = tmp_path_factory.getbasetemp() / "any bytes"
        save(out, at(0), at(1))
        name, content = estimate_file(at(1))
        forged = bytearray(content)
        for place, byte in changes:
            forged[place % len(forged)] = byte
        (out / name).write_bytes(forged)
        damaged: list[ResultsError] = []
        estimates, *_ = folder_of(out, damaged.append).current()
        assert hours(estimates)[0] == 0
        assert len(estimates) + len(damaged) == 2
        for estimate in estimates:
            text = estimate_text(estimate, SPECS["c", 1])
            assert all(line.isprintable() for line in text.splitlines())
            json.loads(json.dumps(to_json(estimate, None, None), allow_nan=False))
            assert list(Rows().batches([(estimate, SPECS["c", 1])]))

    def test_an_estimate_under_another_spec_hides_no_other(self, tmp_path: Path) -> None:
        spec = CollectionSpec.parse(yaml.safe_load(SPEC))
        other = replace(ESTIMATE, device_digest="0123456789abcdef")
        damaged: list[ResultsError] = []
        folder = folder_of(tmp_path, damaged.append, specs={spec.key: spec})
        assert list(folder.with_specs([other, ESTIMATE, other])) == [(ESTIMATE, folder.specs[spec.key])]
        assert len(damaged) == 1


def container(schema: str, records: int, block: bytes, *, size: int | None = None, codec: str = "null") -> bytes:
    """A file with one block, which claims to take ``size`` bytes."""
    file = io.BytesIO()
    write_header(file, schema, MARKER, {} if schema != "statistic" else header(min(records, 20_000)), codec)
    return file.getvalue() + write_long(records) + write_long(len(block) if size is None else size) + block + MARKER


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


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "cells": (lambda: container("statistic", 1, claiming(MAX_CELLS)), "claims 33,554,432 cells, more than the 4 of"),
    "panes": (lambda: container("statistic", 99, 99 * claiming(4)), "its panes are of other windows, collections or"),
    "deflated panes": (
        lambda: container("statistic", 50_000, deflate(50_000 * claiming(4)), codec="deflate"),
        "the headers of its panes are too many",
    ),
    "gigabytes deflated": (
        lambda: container("statistic", 1, deflate(bytes(1 << 26)), codec="deflate"),
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
