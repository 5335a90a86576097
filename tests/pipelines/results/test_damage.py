"""Files of results that are damaged or forged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.build import HOUR, START
from tests.pipelines.results.samples import COUNTS, ESTIMATE, SPEC, SPECS, at, hours, save, write
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.read import current, read_counts
from uldp.pipelines.results.specs import with_specs
from uldp.pipelines.results.text import estimate_text, to_json
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.framing import load_schema
from uldp.transforms.io.results import estimate_file, window_folder


class TestDamage:
    """A damaged file hides its window and no other."""

    def damage(self, out: Path, kind: str, hour: int, change: Callable[[bytes], bytes]) -> Path:
        folder = window_folder(at(hour).support)
        path = min((out / kind / folder).glob("*.avro"))
        path.write_bytes(change(path.read_bytes()))
        return path

    @pytest.mark.parametrize("kind", ["estimates", "counts"])
    def test_hides_its_window_alone(self, tmp_path: Path, kind: str) -> None:
        save(tmp_path, at(0), at(1, revision=0), at(1, revision=1), at(2))
        path = self.damage(tmp_path, kind, 1, lambda data: data[:-30])
        damaged: list[ResultsError] = []
        estimates, unpublished = current(tmp_path, SPECS, damaged=damaged.append)
        assert (hours(estimates), unpublished) == ([0, 2], [])
        assert [str(error).startswith(f"{path}: damaged, or not an Avro file") for error in damaged] == [True]

    def test_is_raised_unless_somebody_takes_it(self, tmp_path: Path) -> None:
        save(tmp_path, at(0))
        path = self.damage(tmp_path, "counts", 0, lambda data: b"")
        for read in (read_counts, lambda out: current(out, SPECS)):
            with pytest.raises(ResultsError, match=str(path)):
                read(tmp_path)

    def test_all_damaged_files_are_named(self, tmp_path: Path) -> None:
        save(tmp_path, at(0), at(1))
        paths = [
            self.damage(tmp_path, kind, hour, lambda data: b"") for hour in (0, 1) for kind in ("counts", "estimates")
        ]
        damaged: list[ResultsError] = []
        assert current(tmp_path, SPECS, damaged=damaged.append) == ([], [])
        assert [str(error).split(": ")[0] for error in damaged] == [str(path) for path in paths]

    @pytest.mark.parametrize(
        "forged",
        [
            {"window_end": 2**62},
            {"window_start": START + 2 * HOUR},
            {"collection": "other"},
            {"estimator": "em"},
            {"counts": [-1, 0, 0, 0]},
            {"counts": [101, 0, 0, 0]},
            {"counts": []},
            {"accounting": {"received": 107, "counted": -100, "duplicate": 4, "late": 2, "rejected": 1}},
            {"accounting": {"received": 0, "counted": 0, "duplicate": 0, "late": 0, "rejected": 0}, "counts": [0]},
            {"signals": COUNTS.signals.to_avro() | {"past": [0] * 5000}},
            {"distribution": [float("nan")] * 3},
            {"distribution": [1.0, 0.0]},
            {"distribution": [], "stderr": []},
            {"stderr": [float("inf")] * 3},
            {"stderr": [-1.0] * 3},
            {"bound": 1e300},
            {"tags": {"home": {"mass": float("nan"), "stderr": 0.0}}},
        ],
        ids=str,
    )
    def test_what_no_job_writes_is_damage(self, tmp_path: Path, forged: dict[str, Any]) -> None:
        save(tmp_path, at(0), at(1))
        name, _ = estimate_file(at(1))
        write(tmp_path / name, load_schema("estimate"), at(1).to_avro() | forged)
        damaged: list[ResultsError] = []
        estimates, _ = current(tmp_path, SPECS, damaged=damaged.append)
        assert (hours(estimates), len(damaged)) == ([0], 1)

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
        estimates, _ = current(out, SPECS, damaged=damaged.append)
        assert hours(estimates)[0] == 0
        assert len(estimates) + len(damaged) == 2
        for estimate in estimates:
            text = estimate_text(estimate, ["red", "green", "blue"][: len(estimate.distribution)] * 9)
            assert all(line.isprintable() for line in text.splitlines())
            json.loads(json.dumps(to_json(estimate), allow_nan=False))

    def test_an_estimate_under_another_spec_hides_no_other(self) -> None:
        spec = CollectionSpec.parse(yaml.safe_load(SPEC))
        other = replace(ESTIMATE, epsilon=9.0)
        damaged: list[ResultsError] = []
        found = list(with_specs([other, ESTIMATE, other], {spec.key: spec}, damaged.append))
        assert found == [(ESTIMATE, spec)]
        assert len(damaged) == 1
