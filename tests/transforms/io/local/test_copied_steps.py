"""Beam's local runner copies the steps of a local job, and does not pickle them."""

from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import apache_beam as beam
import pytest

from tests.build import spec
from tests.transforms.io.local.test_small_state import begun, follow
from uldp.pipelines.jobs import local as jobs
from uldp.transforms.internals import transform_evaluator
from uldp.transforms.io.local.lighter_runner import copied_steps

HOUR = 3_600_000


class Step(beam.DoFn):
    """A step that cannot be pickled."""

    def __init__(self) -> None:
        self.given = (number for number in range(0))

    def start_bundle(self) -> None:
        self.taken = list[int]()


def test_a_bundle_leaves_the_step_as_it_was_made() -> None:
    step = Step()
    with copied_steps():
        copies = [transform_evaluator().pickler.roundtrip(step) for _ in range(2)]
    for copy in copies:
        assert copy.given is step.given
        copy.start_bundle()
        copy.taken.append(1)
    assert [copy.taken for copy in copies] == [[1], [1]]
    assert vars(step).keys() == {"given"}


def test_the_runner_pickles_as_before_when_the_context_ends() -> None:
    before = transform_evaluator().pickler
    with copied_steps():
        assert transform_evaluator().pickler is not before
    assert transform_evaluator().pickler is before
    with pytest.raises(TypeError, match="cannot pickle"):
        before.roundtrip(Step())


def test_results_are_the_same(tmp_path: Path) -> None:
    stream, of = begun(tmp_path / "stream", 20, 3 * HOUR), spec(window={"size": "6h", "allowed_lateness": "2h"})
    with mock.patch.object(jobs, "copied_steps", nullcontext):
        expected = follow(stream, tmp_path / "pickled", of)
    assert follow(stream, tmp_path / "copied", of) == expected
