"""Beam's local runner runs the steps of a local job on bundles with elements alone."""

from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from tests.build import HOUR, spec
from tests.transforms.io.local.test_small_state import begun, follow
from uldp.pipelines.jobs import local as jobs
from uldp.transforms.internals import evaluation_context
from uldp.transforms.io.local.stream import LocalStream

SEGMENTS = 20


def watched(stream: LocalStream, out: Path) -> tuple[Mapping[str, bytes], Counter[str]]:
    """The files of a job, and how many bundles each of its steps had."""
    context, bundles = evaluation_context(), Counter[str]()
    handle = context.handle_result

    def noted(given: Any, bundle: Any, timers: Any, result: Any) -> Any:
        bundles[result.transform.full_label] += 1
        return handle(given, bundle, timers, result)

    with mock.patch.object(context, "handle_result", noted):
        return follow(stream, out, spec(window={"size": "6h", "allowed_lateness": "2h"})), bundles


def test_results_are_the_same_and_steps_without_elements_rest(tmp_path: Path) -> None:
    stream = begun(tmp_path / "stream", SEGMENTS, 3 * HOUR)
    with mock.patch.object(jobs, "full_bundles", nullcontext):
        expected, before = watched(stream, tmp_path / "all")
    found, after = watched(stream, tmp_path / "full")
    assert found == expected
    assert after["Aggregate/Decode/DecodeColumns/ParDo(_DecodeFn)"] == SEGMENTS
    assert after["WriteResults/WriteRejected"] == 0
    assert before["WriteResults/WriteRejected"] == SEGMENTS
    assert 2 * after.total() < before.total()
