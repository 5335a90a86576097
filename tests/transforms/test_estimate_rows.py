"""Estimates as rows of Beam: a schema that sinks of Beam know, and the same values as the rows of every other place."""

import json
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from apache_beam.testing.util import assert_that, equal_to

from tests import build
from tests.pipelines.results.test_export import SPEC as TAGGED
from tests.pipelines.results.test_export import WITH_TAGS
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.records import Message
from uldp.schemas.rows import KEY, STORED_COLUMNS
from uldp.transforms.estimate_rows import FIELDS, EstimateReports, estimate_rows
from uldp.transforms.io.json_rows import json_rows

#: As docs/beam.md has it.
PROVIDER = {"type": "python", "config": {}, "transforms": {"EstimateReports": "uldp.transforms.EstimateReports"}}
KEYS = {"collection": "c", "version": 1, "domain": {"labels": ["red", "green, blue", "blå"]}}
KEYS |= {"mechanism": {"name": "rr", "epsilon": 1.0}, "window": {"size": "1h"}, "limits": {"min_reports": 2}}


def reports() -> list[Message]:
    return [build.message(build.report(number, number % 3)) for number in range(30)] + [Message(b"junk", 0)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(KEYS), encoding="utf-8")
    return tmp_path / "spec.yaml"


def test_the_rows_are_those_of_json_in_the_order_of_the_schema() -> None:
    found = [row.as_dict() for row in estimate_rows(SharedSpecs([TAGGED]), WITH_TAGS)]
    assert found == list(json_rows(WITH_TAGS, TAGGED))
    assert [name for name, _ in FIELDS] == list(STORED_COLUMNS) == list(found[0])
    assert all(row[name] is not None for row in found for name in KEY)


def test_rows_of_messages_become_rows_of_estimates(file: Path) -> None:
    sent = [beam.Row(data=each.data, publish_time=each.publish_time) for each in reports()]
    with beam.Pipeline("FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(sent) | EstimateReports([str(file)])
        labels = rows | "Labels" >> beam.Map(lambda row: (row.quantity, row.label, row.n, row.counted))
        assert_that(labels, equal_to([("share", label, 30, 30) for label in ("red", "green, blue", "blå")]))


@pytest.mark.slow
def test_a_pipeline_of_beam_yaml_takes_the_transform(file: Path) -> None:
    sent = reports()
    columns = {"data": [each.data for each in sent], "publish_time": [each.publish_time for each in sent]}
    pq.write_table(pa.table(columns), file.with_name("reports.parquet"))
    pipeline = {
        "providers": [PROVIDER],
        "pipeline": {
            "type": "chain",
            "transforms": [
                {"type": "ReadFromParquet", "config": {"path": str(file.with_name("reports.parquet"))}},
                {"type": "EstimateReports", "config": {"specs": [str(file)]}},
                {"type": "Filter", "config": {"language": "python", "keep": "label != 'red'"}},
                {"type": "WriteToJson", "config": {"path": str(file.with_name("rows.json"))}},
            ],
        },
    }
    file.with_name("pipeline.yaml").write_text(yaml.safe_dump(pipeline), encoding="utf-8")
    module = [sys.executable, "-m", "apache_beam.yaml.main", f"--yaml_pipeline_file={file.with_name('pipeline.yaml')}"]
    done = subprocess.run([*module, "--runner=FnApiRunner"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for path in file.parent.glob("rows.json*") for line in path.read_text("utf-8").splitlines()]
    rows = {row["label"]: row for row in map(json.loads, lines)}
    assert rows.keys() == {"green, blue", "blå"}
    assert all(row["low"] <= row["estimate"] <= row["high"] and row["n"] == 30 for row in rows.values())
