"""The step that fires the panes of a stream, timer by timer. What users see is in test_aggregate.py."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.transforms.bags import Bag, Cell
from uldp.collector.partial import Partial, sum_parts
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.window_keys import WindowKeys
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.coders import PartialCoder
from uldp.transforms.count import CollectSlices, KeyedPartial
from uldp.transforms.panes import FirePanes, _FirePanesFn
from uldp.transforms.slide import slide
from uldp.transforms.windows import at_time

FIXED = build.spec(domain={"size": 3}, mechanism={"name": "identity"}, window={"size": "1h", "early_every": "10s"})
SLIDING = build.spec(domain={"size": 3}, mechanism={"name": "identity"}, window={"size": "6h", "period": "1h"})


OTHER = SLIDING.model_copy(update={"collection": "sliding"})


class Timer:
    """A runner's timer, in milliseconds."""

    def __init__(self) -> None:
        self.at: int | None = None

    def set(self, at: Timestamp) -> None:
        self.at = at.micros // 1000 + 1


class Key:
    """The step and its state for the windows of a collection, or of several that share the key."""

    def __init__(self, *specs: CollectionSpec) -> None:
        self.shared = SharedSpecs(specs)
        self.served = self.shared.served[specs[0].key]
        self.places = [WindowKeys(1).place(served) for served in self.shared.served.values()]
        (group,) = {place.group for place in self.places}
        self._key = group, START if specs[0].window.period is None else 0
        self._step = _FirePanesFn(self.shared, simulated_clock=True)
        counts = PartialCoder()
        self.slices, self.parts, self.waiting = Cell(counts), Bag(counts), Cell(counts)
        self.histories, self.pending = Cell(), Cell()
        self.due, self.early = Timer(), Timer()
        self.bundles = 0

    @property
    def states(self) -> list[Cell]:
        return [self.slices, self.parts, self.histories, self.waiting, self.pending]

    def take(self, hour: int, *n: int | None) -> None:
        """Take so many reports and one of each collection, unless it is None."""
        parts = [
            build.part(np.array([each, 0, 1]), Accounting(received=each + 1, counted=each + 1)).at(
                START + hour * HOUR + place.offset
            )
            for each, place in zip(n, self.places, strict=True)
            if each is not None
        ]
        if parts:
            self._step.process((self._key, sum_parts(parts)), self.parts, self.pending, self.due, self.early)

    def advance(self, hour: int, *, knows: bool = False) -> Iterator[Statistic]:
        """Advance the watermark: timers that are due fire, one after the other, and may know where the watermark is."""
        while self.due.at is not None and self.due.at <= START + hour * HOUR:
            self.bundles += 1
            at, self.due.at = Timestamp(micros=(START + hour * HOUR if knows else self.due.at) * 1000 - 1), None
            states = self.slices, self.parts, self.histories, self.waiting, self.pending
            for pane in self._step.end(self._key, at, *states, self.due):
                assert pane.timestamp.micros // 1000 == pane.value.window_end - 1
                yield pane.value

    def fire_early(self) -> list[Statistic]:
        states = self.slices, self.parts, self.histories, self.waiting, self.pending
        self.early.at = None
        return [pane.value for pane in self._step.early(self._key, *states, self.early)]


def shape(panes: Iterator[Statistic] | list[Statistic]) -> list[tuple[int, str, int, int]]:
    """The hour at which a window begins, and kind, revision and n of its pane."""
    return [((p.window_start - START) // HOUR, p.pane.kind.value, p.pane.revision, p.n) for p in panes]


#: Reports of an hour before the watermark or behind it, by less than a day, and hours by which it advances.
ADVANCES = st.lists(st.tuples(st.integers(-20, 9), st.integers(0, 5)) | st.sampled_from([1, 7, 300]), max_size=12)


@pytest.mark.parametrize("most", [1 << 22, 9, 1])
@pytest.mark.parametrize("lateness", ["0s", "1d"])
@given(ADVANCES)
def test_windows_fire_together_as_one_by_one(most: int, lateness: str, steps: list[tuple[int, int] | int]) -> None:
    """A runner may say how far the watermark is: an outage of a day ends with one firing, not with one a window."""
    window = {"size": "6h", "period": "1h", "allowed_lateness": lateness}
    spec = build.spec(domain={"size": 3}, mechanism={"name": "identity"}, window=window)
    together, one_by_one, hour = Key(spec), Key(spec), 0
    with mock.patch.object(_FirePanesFn, "MOST", most):
        for step in [*steps, 300]:
            if isinstance(step, tuple):
                together.take(hour + step[0], step[1])
                one_by_one.take(hour + step[0], step[1])
            else:
                hour += step
                panes = of(list(together.advance(hour, knows=True)), "c")
                assert sorted(panes, key=repr) == sorted(of(list(one_by_one.advance(hour)), "c"), key=repr)
    assert together.bundles <= one_by_one.bundles


def test_all_windows_that_the_watermark_has_passed_fire_in_one_bundle() -> None:
    key = Key(SLIDING)
    for hour in range(100):
        key.take(hour, 1)
    assert len(list(key.advance(100, knows=True))) == 105 - 5
    assert key.bundles == 1


def test_windows_of_many_slices_are_their_sums() -> None:
    key, rng = Key(SLIDING), np.random.default_rng(3)
    sent = {int(hour): int(rng.integers(0, 9)) for hour in rng.permutation(40)[:25]}
    for hour, n in sent.items():
        key.take(hour, n)
    slices = {START + h * HOUR: build.part(np.array([n, 0, 1]), Accounting(n + 1, n + 1)) for h, n in sent.items()}
    wanted = {start: total.accounting.counted for start, total in slide(slices, 6 * HOUR, HOUR)}
    panes = list(key.advance(60))
    assert {pane.window_start: pane.n for pane in panes} == wanted
    assert len(panes) == len(wanted)
    assert all(pane.cells.sum() == pane.n for pane in panes)


def test_a_late_part_fires_the_windows_that_have_ended_and_hold_it() -> None:
    key = Key(SLIDING)
    key.take(0, 3)
    assert len(list(key.advance(3))) == 3
    key.take(1, 1)
    assert shape(key.advance(3)) == [(-4, "late", 1, 6), (-3, "late", 1, 6)]
    assert shape(key.advance(7)) == [
        (-2, "on_time", 0, 6),
        (-1, "on_time", 0, 6),
        (0, "on_time", 0, 6),
        (1, "on_time", 0, 2),
    ]


def of(panes: Iterator[Statistic] | list[Statistic], name: str) -> list[tuple[Any, ...]]:
    return [(*p.key, p.pane, p.supersedes, p.n, p.cells.tolist(), p.flags) for p in panes if p.collection == name]


#: With other limits of reports and another mechanism, but the same windows.
TOGETHER = [
    build.spec(
        collection=name,
        domain={"size": 3},
        mechanism={"name": mechanism, "epsilon": 1.0} if mechanism != "identity" else {"name": mechanism},
        window={"size": "1h", "early_every": "10s"},
        limits={"min_reports": least},
    )
    for name, mechanism, least in (("a", "identity", 1), ("b", "identity", 4), ("c", "rr", 3))
]
#: Reports of each collection, early panes, and hours by which the watermark advances: the window ends, and is freed.
STEPS = st.lists(
    st.tuples(*[st.none() | st.integers(0, 5)] * 3) | st.just("early") | st.sampled_from([1, 30]), max_size=12
)


@given(STEPS)
def test_windows_that_share_a_key_fire_as_each_alone(steps: list[tuple[int | None, ...] | str | int]) -> None:
    shared, alone = Key(*TOGETHER), [Key(spec) for spec in TOGETHER]
    hour = 0
    for step in steps:
        if isinstance(step, tuple):
            shared.take(0, *step)
            for key, n in zip(alone, step, strict=True):
                key.take(0, n)
        hour += step if isinstance(step, int) else 0
        fire = Key.fire_early if step == "early" else partial(Key.advance, hour=hour)
        panes = list(fire(shared))
        for key, spec in zip(alone, TOGETHER, strict=True):
            assert of(panes, spec.collection) == of(fire(key), spec.collection)


@pytest.mark.parametrize("lateness", ["0d", "1d"])
def test_a_key_is_freed_with_the_last_of_its_collections(lateness: str) -> None:
    """A job that goes on from a savepoint may have another lateness, so it is in no key."""
    late = TOGETHER[0].window.model_copy(update={"allowed_lateness": timedelta(days=lateness == "1d")})
    key = Key(TOGETHER[0].model_copy(update={"window": late}), TOGETHER[2])
    key.take(0, 3, 3)
    hours = 1 + 25 + 24 * (lateness == "1d")
    assert len(list(key.advance(hours - 1))) == 2
    assert key.slices.entries
    assert list(key.advance(hours)) == []
    assert [state.entries for state in key.states] == [[]] * 5


def test_each_collection_of_a_key_has_early_panes_when_its_spec_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1_000.0
    monkeypatch.setattr("uldp.transforms.panes.now", lambda: clock)
    every = {"none": None, "ten": 10, "sixty": 60}
    key = Key(
        *[
            FIXED.model_copy(
                update={
                    "collection": name,
                    "window": FIXED.window.model_copy(update={"early_every": seconds and timedelta(seconds=seconds)}),
                }
            )
            for name, seconds in every.items()
        ]
    )
    fired = list[tuple[float, str]]()
    for second in range(1, 130):
        key.take(0, 1, 1, 1)
        clock += 1
        if key.early.at is not None and key.early.at <= 1000 * clock + 1:
            fired += [(second, pane.collection) for pane in key.fire_early()]
    assert [second for second, name in fired if name == "ten"] == list(range(10, 130, 10))
    assert [second for second, name in fired if name == "sixty"] == [60, 120]
    assert {name for _, name in fired} == {"ten", "sixty"}


def test_state_of_a_collection_that_the_job_does_not_have_is_refused() -> None:
    key = Key(*TOGETHER)
    key.take(0, 1, 1, 1)
    object.__setattr__(key.shared, "served", SharedSpecs(TOGETHER[:2]).served)
    with pytest.raises(RequestError, match="counts of a collection that the job does not have; give its spec, too"):
        list(key.advance(1))


def test_early_panes_fire_again_when_something_has_come() -> None:
    key = Key(FIXED)
    key.take(0, 3)
    assert shape(key.fire_early()) == [(0, "early", 0, 4)]
    assert key.fire_early() == []
    key.take(0, 1)
    assert shape(key.fire_early()) == [(0, "early", 1, 6)]
    assert shape(key.advance(1)) == [(0, "on_time", 2, 6)]
    key.early.at = None
    key.take(0, 1)  # late: there is no early pane any more
    assert key.early.at is None
    assert shape(key.advance(1)) == [(0, "late", 3, 8)]


@pytest.mark.parametrize("spec", [FIXED, SLIDING], ids=["fixed", "sliding"])
def test_a_key_is_freed_when_nothing_can_change_its_windows(spec: CollectionSpec) -> None:
    key = Key(spec)
    key.take(0, 3)
    list(key.advance(6))
    freed = (key.served.window_size + key.served.held_for) // HOUR
    assert list(key.advance(freed - 1)) == []
    assert key.slices.entries
    assert key.histories.entries
    reads = key.slices.reads
    assert list(key.advance(freed)) == []
    assert key.slices.reads == reads + 1
    assert [state.entries for state in key.states] == [[]] * 5
    assert key.due.at is None


def test_slices_are_freed_while_others_come() -> None:
    key = Key(SLIDING)
    for hour in range(200):
        key.take(hour, 1)
        list(key.advance(hour + 1))
    held: Partial = key.slices.read()
    assert len(held) == (key.served.window_size + key.served.held_for) // HOUR - 1
    assert len(key.histories.entries[0]) < (len(held) + 7) * 9 * 8


def test_timers_fire_in_workers_of_a_portable_runner() -> None:
    """The local runner of streams has state and timers of its own; clusters have those of Beam's Fn API."""
    parts = [
        at_time(START + hour * HOUR, (spec.key, build.part(np.array([hour, 0, 1]), Accounting(hour + 1, hour + 1))))
        for hour in (0, 1, 5, 0)
        for spec in (FIXED, OTHER)
    ]
    with beam.Pipeline("FnApiRunner") as pipeline:
        slices = pipeline | beam.Create(range(len(parts))) | beam.Map(parts.__getitem__).with_output_types(KeyedPartial)
        slices.is_bounded = False
        panes = (
            slices
            | CollectSlices([FIXED, OTHER], 16)
            | FirePanes([FIXED, OTHER], simulated_clock=True)
            | beam.Filter(lambda pane: pane.pane.kind is PaneKind.ON_TIME)
            | beam.Map(lambda pane: (pane.collection, (pane.window_start - START) // HOUR, pane.n))
        )
        fixed = [("c", 0, 2), ("c", 1, 2), ("c", 5, 6)]
        sliding = [(-5, 2), (-4, 4), (-3, 4), (-2, 4), (-1, 4), (0, 10), (1, 8), (2, 6), (3, 6), (4, 6), (5, 6)]
        assert_that(panes, equal_to([*fixed, *(("sliding", start, n) for start, n in sliding)]))
