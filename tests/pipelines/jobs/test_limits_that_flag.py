"""Limits that only flag windows are no part of a job's identity, so a job may run again with others."""

import pytest

from tests import build
from uldp.pipelines.jobs.identity import JobIdentity


def identity(**limits: object) -> JobIdentity:
    return JobIdentity.of("stream", "stream", "content", [build.spec(limits=limits)])


@pytest.mark.parametrize(
    "limits",
    [
        {"min_reports": 5},
        {"max_rejected_ratio": 0.1, "when_exceeded": "stop"},
        {"max_duplicate_ratio": 0.1},
        {"max_reports_per_sender": 5},
    ],
)
def test_a_job_may_change_them(limits: dict[str, object]) -> None:
    assert identity().difference(identity(**limits)) is None


def test_a_job_may_not_change_a_limit_that_decides_which_reports_count() -> None:
    assert identity().difference(identity(max_age="2d")) is not None
