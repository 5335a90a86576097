"""The limits of a spec, as `uldp check` prints them."""

import pytest

from tests import build
from uldp.pipelines.results.text import spec_text


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ({}, "1 reports or more, clocks"),
        ({"max_duplicate_ratio": 0.05}, "1 reports or more, flag above 0.05 duplicate, clocks"),
        (
            {"max_rejected_ratio": 0.1, "when_exceeded": "stop", "max_duplicate_ratio": 0.05},
            "1 reports or more, stop above 0.1 rejected, flag above 0.05 duplicate, clocks",
        ),
    ],
)
def test_each_limit_is_shown_with_its_consequence(limits: dict[str, object], shown: str) -> None:
    assert f"  limits      {shown}" in spec_text(build.spec(limits=limits), users=1000)
