"""The flag of windows with more copies than a spec allows."""

import pytest

from tests import build
from uldp.collector.collections import serve
from uldp.collector.sealing import WindowSum, flags_of
from uldp.schemas.flags import Flag, withheld
from uldp.schemas.pane import Accounting


def flags(accounting: Accounting, **limits: object) -> list[Flag]:
    spec = build.spec(limits=limits)
    return list(flags_of(serve([spec])[spec.key], WindowSum.of(build.part(accounting=accounting), 0), {}))


@pytest.mark.parametrize(("limit", "raised"), [(None, []), (0.2, []), (0.19, [Flag.DUPLICATE_RATIO])])
def test_the_ratio_is_of_the_received_reports(limit: float | None, raised: list[Flag]) -> None:
    window = Accounting(received=20, counted=10, duplicate=4, late=3, rejected=3)
    assert flags(window, max_duplicate_ratio=limit) == raised


def test_rejected_reports_and_duplicates_have_limits_of_their_own() -> None:
    window = Accounting(received=10, counted=4, duplicate=3, rejected=3)
    assert flags(window, max_duplicate_ratio=0.2, max_rejected_ratio=0.4) == [Flag.DUPLICATE_RATIO]
    assert flags(window, max_duplicate_ratio=0.4, max_rejected_ratio=0.2) == [Flag.REJECTED_RATIO]


def test_a_collection_does_not_stop_at_duplicates() -> None:
    """Otherwise whoever sends copies would silence it."""
    limits = build.spec(limits={"max_duplicate_ratio": 0.1, "max_rejected_ratio": 0.1, "when_exceeded": "stop"}).limits
    assert not withheld(limits, [Flag.DUPLICATE_RATIO])
    assert withheld(limits, [Flag.DUPLICATE_RATIO, Flag.REJECTED_RATIO])
