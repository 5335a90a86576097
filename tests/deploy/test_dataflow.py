"""The flex template: what Dataflow reads of it, and what it gives to the command line."""

import json
import re
from pathlib import Path

import pytest

from uldp.pipelines.cli import cli

TEMPLATE = (Path(__file__).parents[2] / "deploy" / "dataflow" / "template.json").read_text(encoding="utf-8")
PARAMETERS = {parameter["name"]: parameter for parameter in json.loads(TEMPLATE)["metadata"]["parameters"]}


def test_dataflow_knows_every_field() -> None:
    dataflow = pytest.importorskip("google.cloud.dataflow", reason="pip install '.[gcp]'")
    spec = dataflow.ContainerSpec.from_json(TEMPLATE)  # refuses what it does not know
    assert [parameter.name for parameter in spec.metadata.parameters] == ["spec", "from", "to"]
    assert spec.sdk_info.language == dataflow.SDKInfo.Language.PYTHON
    assert spec.metadata.streaming


def test_parameters_are_the_options_that_a_stream_needs() -> None:
    required = {option.opts[0].removeprefix("--") for option in cli.commands["stream"].params if option.required}
    # Of --spec and --specs it needs one, and the template has --spec.
    assert PARAMETERS.keys() == required | {"spec"}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("spec", "/specs/survey.yaml", "survey.yaml"),
        ("from", "pubsub:projects/project/subscriptions/reports", "projects/project/topics/reports"),
        ("to", "gs://bucket/results", "results"),
    ],
)
def test_a_parameter_is_checked_before_the_job_starts(name: str, good: str, bad: str) -> None:
    (pattern,) = PARAMETERS[name]["regexes"]
    assert re.fullmatch(pattern, good)
    assert not re.fullmatch(pattern, bad)
    assert 0 < len(PARAMETERS[name]["helpText"]) <= 256
