"""Beam's internals are imported in few modules, and a Beam without sources in Python is no obstacle but to them."""

import subprocess
import sys
from pathlib import Path

from tests.test_layering import MODULES, imports, offenders

#: The second is of jobs of this machine, and the third a program of its own, which runs Beam's worker pool.
INTERNALS = {
    "transforms/uldp/transforms/internals.py",
    "transforms/uldp/transforms/io/local/runner_internals.py",
    "pipelines/uldp/pipelines/jobs/pool.py",
}
#: The modules that Beam's programming guide and reference describe.
DOCUMENTED = {
    "apache_beam",
    "apache_beam.coders",
    "apache_beam.io.filesystem",
    "apache_beam.io.filesystems",
    "apache_beam.io.gcp.pubsub",
    "apache_beam.metrics",
    "apache_beam.options.pipeline_options",
    "apache_beam.pvalue",
    "apache_beam.runners.runner",
    "apache_beam.testing.test_stream",
    "apache_beam.transforms",
    "apache_beam.transforms.timeutil",
    "apache_beam.transforms.userstate",
    "apache_beam.transforms.window",
}

#: Imports every connector where Beam has no such sources, then tries to read a topic.
PROGRAM = """
import sys

sys.modules["apache_beam.io.unbounded_source"] = None

import apache_beam as beam

sys.modules["apache_beam.runners.direct.evaluation_context"] = None  # only jobs of this machine need it

from uldp.transforms import Aggregate, ReadFromKafka, ReadSubscription
from uldp.transforms.io.kafka.source import KafkaSource
from uldp.transforms.io.kafka.topic import KafkaTopic

topic = KafkaTopic.parse("kafka:127.0.0.1:9092/reports")
try:
    beam.Pipeline("FnApiRunner") | ReadFromKafka(KafkaSource(topic))
except ValueError as error:
    print(error)
"""


def beams(path: Path) -> set[str]:
    return {name for name in imports(path) if name.partition(".")[0] == "apache_beam"}


def test_few_modules_import_what_beam_does_not_document() -> None:
    assert set(offenders(lambda path: beams(path) - DOCUMENTED)) == INTERNALS


def test_what_is_documented_is_used() -> None:
    assert set[str]().union(*map(beams, MODULES)) >= DOCUMENTED


def test_an_older_beam_lacks_nothing_but_sources_in_python() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("Beam 2.")
    assert ended.stdout.endswith("Beam 2.76 can: pip install 'apache-beam>=2.76'\n")
