"""What a step derives from its specs is made once in a process, however often the step is copied."""

import random
from pathlib import Path
from unittest import mock

from tests.build import MINUTE, START, message, report, spec
from uldp.collector.seen import SeenIds
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.jobs import local as jobs
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Waiting


def made(tmp_path: Path, segments: int) -> tuple[int, int]:
    """How often a job of so many bundles works out its spec, and how often it hashes the ids of a shard anew."""
    ids = [random.Random(number).getrandbits(128) for number in range(256)]  # so that no shard is empty
    stream = LocalStream.create(tmp_path / f"stream{segments}", simulated_clock=True)
    for minute in range(segments):
        stream.append([message(report(number, 0), START + minute * MINUTE) for number in ids])
    stream.close()
    with (
        mock.patch.object(Waiting, "MAX_SEGMENTS", 1),
        mock.patch("uldp.collector.collections.build_protocol", wraps=build_protocol) as protocols,
        mock.patch("uldp.transforms.remembered.SeenIds", wraps=SeenIds) as seen,
    ):
        out, options = tmp_path / f"out{segments}", jobs.pipeline_options([])
        jobs.follow([spec()], stream.path, out, options)
    return protocols.call_count, seen.call_count


def test_a_bundle_more_derives_nothing_anew(tmp_path: Path) -> None:
    assert made(tmp_path, segments=5) == made(tmp_path, segments=2)
