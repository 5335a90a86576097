"""Files of results that are damaged or forged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.build import HOUR, START
from tests.pane_files import estimate_file, forged_file
from tests.pane_files import save as save_file
from tests.pipelines.results.samples import (
    COUNTS,
    ESTIMATE,
    SPEC,
    SPECS,
    at,
    folder_of,
    hours,
    save,
    statistic_of,
)
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.json_lines import to_json
from uldp.pipelines.results.text import estimate_text
from uldp.schemas.rows import Rows
from uldp.schemas.specs.collection import CollectionSpec
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
        start = window_name(at(hour)).partition("/")[2].partition("--")[0]
        path = min((out / kind).glob(f"*.{start}--*.avro"))
        path.write_bytes(change(path.read_bytes()))
        return path

    @pytest.mark.parametrize("kind", ["estimates", "counts"])
    def test_hides_its_window_alone(self, tmp_path: Path, kind: str) -> None:
        save(tmp_path, at(0), at(1, revision=0), at(1, revision=1), at(2))
        path = self.damage(tmp_path, kind, 1, lambda data: data[:-30])
        damaged: list[ResultsError] = []
        estimates, unpublished, *_ = folder_of(tmp_path, damaged.append).current()
        assert (hours(estimates), unpublished) == ([0, 2], [])
        assert [str(error).startswith(f"{path}: damaged, or not an Avro file") for error in damaged] == [True]

    def test_is_raised_unless_somebody_takes_it(self, tmp_path: Path) -> None:
        save(tmp_path, at(0))
        path = self.damage(tmp_path, "counts", 0, lambda data: b"")
        for read in (ResultsFolder.statistics, ResultsFolder.current):
            with pytest.raises(ResultsError, match=str(path)):
                read(folder_of(tmp_path))

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
            share(values=b"1234567"),
            share(stderr=floats(1, 1, np.inf)),
            share(stderr=floats(-1, 1, 1)),
            share(values=floats(1e300, 1, 1)),
            share(shape=[2, 2]),
            share(shape=[-1, -3]),
            share(keys=["a", "b"]),
            share(low=floats(0, 0, 0)),
            share(basis="exact"),
            share(low=floats(0, 0), high=floats(1, 1), basis="normal"),
            share(level=1.0),
            share(n=101),
            share(name="shares"),
            share(basis="guess"),
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
            {"itemsize": 2},
            {"values": b""},
            {"values": b"", "size": 0},
            {"size": 3, "indices": b"\3\0\0\0", "values": b"\1"},
            {"indices": b"\1\0\0\0\0\0\0\0", "values": b"\1\1"},
            {"indices": b"\1\0\0\0", "values": b"\1\1"},
            {"indices": b"\1\0\0", "values": b"\1"},
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
