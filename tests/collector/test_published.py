"""What is published of a window pane after pane: no two panes differ by fewer reports than ``min_reports``."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests import build
from uldp.collector.partial import Partial
from uldp.collector.published import Histories, History, early_step, is_whole, public, reports_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.pane import Accounting, Superseded

LEAST = 5
PLAIN = build_protocol(build.spec(domain={"size": 3}, mechanism={"name": "identity"})).decoder
RECORD = build_protocol(
    build.spec(
        domain={"record": {"a": {"size": 2}, "b": {"size": 2}}},
        mechanism={"name": "sample-one", "epsilon": 20.0, "of": {"a": {"name": "rr"}, "b": {"name": "rr"}}},
    )
).decoder


def part(*cells: int) -> Partial:
    n = sum(cells)
    return build.part(np.array(cells), Accounting(n, n))


def published(decoder: Decoder, totals: list[Partial]) -> list[Partial]:
    waiting, found = None, []
    for total in totals:
        now, waiting = early_step(decoder, waiting, total, LEAST)
        found += [now] if now is not None else []
    return found


def test_early_panes_stay_one_step_behind() -> None:
    totals = [part(n, 0, 0) for n in range(1, 21)]
    assert [pane.accounting.counted for pane in published(PLAIN, totals)] == [5, 10, 15]


@pytest.mark.parametrize(("decoder", "cells"), [(PLAIN, 3), (RECORD, 4)])
@pytest.mark.parametrize("seed", range(20))
def test_no_pane_differs_from_another_by_few_reports(decoder: Decoder, cells: int, seed: int) -> None:
    """Nor does the pane on time, which has all reports."""
    rng = np.random.default_rng(seed)
    total, totals = part(*[0] * cells), []
    for _ in range(40):
        total = total + part(*rng.integers(0, 3, cells).tolist())
        totals.append(total)
    early = published(decoder, totals)
    assert len(early) > 2
    panes = [np.array(reports_of(decoder, pane)) for pane in (*early, total)]
    for one, other in combinations(panes, 2):
        assert ((other - one == other) | (other - one >= LEAST)).all()


def test_a_table_of_few_reports_holds_early_panes_back() -> None:
    """A record whose second variable has 1 to 4 reports would show them in the difference to a later pane."""
    steps = [part(5, 0, 0, 0), part(20, 0, 1, 0), part(20, 0, 5, 0), part(26, 0, 9, 0), part(30, 0, 10, 0)]
    found = [reports_of(RECORD, pane) for pane in published(RECORD, steps)]
    assert found == [(5, 0), (20, 5)]


def test_tables_of_few_reports_are_not_public() -> None:
    assert public((4, 5, 0), LEAST) == (0, 5, 0)
    assert [is_whole(reports, LEAST) for reports in ((4, 5), (0, 5), (0, 0), ())] == [False, True, False, False]


WRITTEN = {
    0: History(fired=2**40).after(2**40, (2**40, 0), closed=False),
    60: replace(History(), panes=3).after(7, (), closed=True).after_held(8),
    180: History().after(3, (3,), closed=True),
}


def read(histories: Histories) -> dict[int, History]:
    """The windows from -120 on whose history is not that of a window that never fired."""
    found = {start: histories.get(start) for start in range(-120, 600, 30)}
    return {start: each for start, each in found.items() if each != History()}


def padded(history: History) -> History:
    """Tables of which nothing was published have 0 reports."""
    return replace(history, reports=(*history.reports, 0, 0)[:2])


def test_histories_are_read_back() -> None:
    packed = Histories.unpack(None).update(WRITTEN).pack()
    found = {start: padded(each) for start, each in read(Histories.unpack(packed)).items()}
    assert found == {start: padded(each) for start, each in WRITTEN.items()}


def test_a_history_takes_the_place_of_the_one_of_its_window() -> None:
    one, two = Histories.unpack(None).update(WRITTEN), {60: History(fired=9), 90: History(fired=8)}
    found = one.update(two)
    assert len(found) == len(WRITTEN) + 1
    assert (found.get(60).fired, found.get(90).fired, found.get(180).last) == (9, 8, Superseded(0, 3))
    assert sorted(read(found.since(61))) == [90, 180]
    assert one.get(60).panes == 5


def test_the_history_of_a_window_does_not_grow_with_its_domain() -> None:
    decoder = build_protocol(build.spec(domain={"size": 12_800}, mechanism={"name": "identity"})).decoder
    reports = reports_of(decoder, part(*[1] * 12_800))
    packed = Histories.unpack(None).update({0: History().after(12_800, reports, closed=True)}).pack()
    assert len(packed) == 4 + 9 * 8


def test_a_window_begins_open_and_stays_closed() -> None:
    empty = History()
    assert [each.closed for each in (empty, empty.after(3, (3,), closed=False))] == [False, False]
    closed = empty.after(3, (3,), closed=True)
    assert closed.after(4, (4,), closed=False).closed
