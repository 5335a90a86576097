"""What a report takes on Flink, from the times at which panes come."""

from typing import cast

import pytest

pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")

from benchmarks import flink
from tests.cluster.flink import Flink
from tests.cluster.following import Results
from uldp.schemas.pane import Accounting


class Panes:
    """Results of which each look finds more."""

    def __init__(self, *received: int) -> None:
        self._received = iter(received)

    def total(self) -> Accounting:
        return Accounting(received=next(self._received))


@pytest.mark.parametrize(
    ("received", "times", "taken"),
    [
        ((500_000, 1_000_000), [(0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (3.0, 5.0, 7.0)], (4.0, 6.0, 8.0)),
        ((1_000_000, 1_000_000), [(0.0, 0.0, 0.0), (3.0, 5.0, 7.0)], (3.0, 5.0, 7.0)),
    ],
)
def test_a_report_is_measured_from_the_first_pane_or_if_that_holds_all_from_the_start(
    received: tuple[int, int],
    times: list[tuple[float, float, float]],
    taken: tuple[float, float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent = iter(times)
    monkeypatch.setattr(flink, "_spent", lambda _: next(spent))
    assert flink._follow(cast(Flink, None), cast(Results, Panes(*received)), 1_000_000) == taken
