"""Labels in JSON: a reader needs no spec to know which number is of which value."""

from dataclasses import replace
from typing import Any

import pytest

from tests import build
from tests.pipelines.results.samples import ESTIMATE
from uldp.pipelines.results.json_lines import to_json
from uldp.schemas.table import Table

LABELS = ["red", "green", "blue"]
RECORD = build.spec(
    domain={"record": {"colour": {"labels": LABELS}, "age": {"number": {"low": 0, "high": 90}}}},
    mechanism={
        "name": "sample-one",
        "epsilon": 1.0,
        "of": {"colour": {"name": "rr"}, "age": {"name": "block", "bins": 3}},
    },
)
SHARE = build.table("share", [0.2, 0.3, 0.5], [0.1] * 3)


@pytest.mark.parametrize(
    ("spec", "table", "keys"),
    [
        (build.spec(domain={"labels": LABELS}), SHARE, LABELS),
        (build.spec(domain={"labels": LABELS}), replace(SHARE, name=build.table("visible", [1], [0]).name), LABELS),
        (build.spec(domain={"size": 3}), SHARE, None),
        (build.spec(domain={"labels": LABELS}), build.table("hidden", [0.1], [0.1], keys=("home",)), ["home"]),
        (build.spec(domain={"labels": LABELS}), build.table("bound", [0.2], [0.0]), None),
        (RECORD, replace(SHARE, of=("colour",)), LABELS),
        (RECORD, replace(SHARE, of=("age",)), ["0 to 30", "30 to 60", "60 to 90"]),
        (RECORD, build.table("mean", [40.0], [1.0], of=("age",)), None),
    ],
)
def test_each_entry_has_its_label_unless_its_index_is_all(spec: Any, table: Table, keys: list[str] | None) -> None:
    (line,) = to_json(replace(ESTIMATE, tables=(table,)), None, spec)["tables"]
    assert line["keys"] == keys
