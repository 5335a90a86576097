"""Deliver the reports of a simulated fleet: perturb them and publish messages in order, with bounded memory.

The seed, the collection, its version and the start determine all randomness, so the same fleet gives the same bytes.
A reader who knows the seed can compute every true value; real devices draw from ``SystemRandomness`` instead.
"""

import hashlib
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from operator import attrgetter, itemgetter, methodcaller
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from uldp.collector.collections import serve
from uldp.pipelines.simulation.faults import Fault, FaultInjector, Faults, fits_batch
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.schemas.arrays import Floats, Payloads, ReportIds, Rows, Times
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.encode import encode_batch, encode_columns, encode_messages
from uldp.schemas.records import Message
from uldp.schemas.specs.durations import milliseconds

#: Mean delays in milliseconds: the delay of the network, and the delay of a second copy after the first.
NETWORK_DELAY = 2_000
COPY_DELAY = 60_000
#: Reports that come after their window has closed come within a window's size, and within this many milliseconds.
LATEST = 3_600_000
#: How long a gateway waits for a batch to fill, in milliseconds.
BATCH_WAIT = 1_000

# Reports per step. The number is large enough to amortize NumPy's calls. A small fleet takes at least _MIN_STEPS steps
# if its duration allows, so that progress shows.
_AT_ONCE = 1 << 16
_MIN_STEPS = 100


class Step(NamedTuple):
    """The messages that a fleet publishes in one step of the simulation, in order, and a summary of them."""

    messages: EncodedMessages
    summary: Summary


def publish(fleet: Fleet) -> Iterator[Step]:
    """Publish all reports of a fleet, step by step, with those of one step and those in transit in memory."""
    network = _Network(fleet)
    end = fleet.start_ms + fleet.duration_ms
    # The end of a step ends unfilled batches. So a step lasts at least as long as a gateway waits for a batch to fill,
    # unless the step fills many batches.
    steps = max(-(-fleet.users // _AT_ONCE), min(_MIN_STEPS, fleet.duration_ms // BATCH_WAIT))
    bounds = np.unique(np.linspace(fleet.start_ms, end, steps + 1).astype(np.int64))
    users = network.rng.multinomial(fleet.users, np.diff(bounds) / fleet.duration_ms)
    for (begin, until), n in zip(pairwise(bounds.tolist()), users.tolist(), strict=True):
        network.observe(begin, until, n)
        yield from network.publish(begin, until)
    # All users have reported; the remaining reports are in transit or held back.
    yield from network.publish(end, network.last + 1)


class _Route(IntEnum):
    """The way of a report to the stream, which determines its publish time."""

    DIRECT = 0
    COPY = 1
    HELD_BACK = 2


class _Arrivals(NamedTuple):
    """Reports in transit, as columns of equal length: arrival time, route, fault, and the fields of the report."""

    at: Times
    ways: npt.NDArray[np.int8]
    faults: Faults
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads

    def take(self, rows: Rows) -> "_Arrivals":
        # ndarray.take copies rows several times faster than an index in brackets does.
        return _Arrivals(*map(methodcaller("take", rows, axis=0), self))

    def cut(self, first: int, end: int) -> "_Arrivals":
        return _Arrivals(*map(itemgetter(slice(first, end)), self))

    def join(self, *others: "_Arrivals") -> "_Arrivals":
        parts = [part for part in (self, *others) if len(part.at)]
        return _Arrivals(*map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else (parts or [self])[0]


class _Held(NamedTuple):
    """Numbers of held-back reports, as columns: the bounds of their event times and of their publish times."""

    begins: Times
    ends: Times
    opens: Times
    closes: Times
    numbers: npt.NDArray[np.int64]


class _Network:
    """The network between the devices and the stream, at one moment of the simulation."""

    def __init__(self, fleet: Fleet) -> None:
        self.rng, self._ids = _generators(fleet)
        self._fleet = fleet
        self._collection = serve([fleet.spec])[fleet.spec.key]
        self._layout = Layout.of(report_schema(), *fleet.spec.key, self._collection.mechanism.form.width)
        self._injector = FaultInjector(self._collection, self._layout)
        nothing = np.empty(0, dtype=np.int64)
        self._travelling = self._obfuscate(nothing, nothing, _Route.DIRECT)
        self._held = _Held(*[nothing] * 5)

    @property
    def last(self) -> int:
        """The last millisecond in which the network may publish an observed report."""
        return int(max(self._travelling.at.max(initial=0), self._held.closes.max(initial=0) - 1))

    def observe(self, begin: int, until: int, users: int) -> None:
        """Let users report at times in [begin, until)."""
        fleet, rng = self._fleet, self.rng
        times = rng.integers(begin, until, users)
        well = max(1 - fleet.late - fleet.malformed - fleet.duplicates, 0.0)
        # The times are i.i.d., so their order may decide which reports are late, damaged, duplicated or intact.
        late, damaged, twice, _ = rng.multinomial(users, [fleet.late, fleet.malformed, fleet.duplicates, well])
        self._hold_back(times[:late])
        times = times[late:]
        reports = self._obfuscate(times + self._delay(NETWORK_DELAY, len(times)), times, _Route.DIRECT, damaged)
        copies = reports.cut(damaged, damaged + twice)
        copies = copies._replace(
            at=copies.at + self._delay(COPY_DELAY, twice), ways=np.full(twice, _Route.COPY, dtype=np.int8)
        )
        self._travelling = self._travelling.join(reports, copies)

    def _delay(self, mean: int, n: int) -> Times:
        return self.rng.exponential(mean, n).astype(np.int64)

    def _obfuscate(self, at: Times, times: Times, way: _Route, damaged: int = 0) -> _Arrivals:
        """Draw true values, perturb them into reports, and damage the first ``damaged`` reports."""
        n = len(times)
        payloads = self._collection.protocol.perturb(self._fleet.truth.sample(n, self.rng), self.rng)
        faults = np.zeros(n, dtype=np.int8)
        faults[:damaged] = self._injector.draw(damaged, self.rng)
        times = self._fleet.spec.sent_time(times)
        self._injector.damage_columns(faults, times, payloads)
        ids = self._ids.integers(0, 1 << 64, (n, 2), dtype=np.uint64)
        return _Arrivals(at, np.full(n, way, dtype=np.int8), faults, ids, times, payloads)

    def _hold_back(self, times: Times) -> None:
        """Count held-back reports by time slice; times within a slice are uniform, so they can be drawn later."""
        spec, end = self._fleet.spec, self._fleet.start_ms + self._fleet.duration_ms
        starts, numbers = np.unique(self._collection.slice_start(times), return_counts=True)
        begins, ends = np.maximum(starts, self._fleet.start_ms), np.minimum(starts + self._collection.slice_size, end)
        size = milliseconds(spec.window.size)
        over, closed = starts + size, starts + self._collection.closes_after
        within = self.rng.binomial(numbers, 0.5) if spec.window.allowed_lateness else np.zeros_like(numbers)
        more = (
            _Held(begins, ends, over, closed, within),
            _Held(begins, ends, closed, closed + min(size, LATEST), numbers - within),
        )
        self._held = _Held(*map(np.concatenate, zip(self._held, *more, strict=True)))

    def publish(self, begin: int, until: int) -> Iterator[Step]:
        """Publish the reports that arrive in [begin, until), in as many steps as their number needs."""
        middle = (begin + until) // 2
        _, _, share = self._open(begin, until)
        expected = (self._travelling.at < until).sum() + (self._held.numbers * share).sum()
        if expected > 2 * _AT_ONCE and middle > begin:
            yield from self.publish(begin, middle)
            yield from self.publish(middle, until)
        elif expected:
            yield self._step(begin, until)

    def _open(self, begin: int, until: int) -> tuple[Times, Times, Floats]:
        """Return, for held-back reports, the start and end of publication in [begin, until), and the share released."""
        opens, closes = np.maximum(self._held.opens, begin), np.minimum(self._held.closes, until)
        return opens, closes, np.clip((closes - opens) / np.maximum(self._held.closes - opens, 1), 0, 1)

    def _release(self, begin: int, until: int) -> _Arrivals:
        """Draw the number of held-back reports published in [begin, until), and then draw and perturb these reports."""
        held = self._held
        opens, closes, share = self._open(begin, until)
        numbers = self.rng.binomial(held.numbers, share)
        remaining = held._replace(numbers=held.numbers - numbers)
        self._held = _Held(*(column[remaining.numbers > 0] for column in remaining))
        times, at = (
            self.rng.integers(np.repeat(low, numbers), np.repeat(high, numbers))
            for low, high in ((held.begins, held.ends), (opens, closes))
        )
        return self._obfuscate(at, times, _Route.HELD_BACK)

    def _step(self, begin: int, until: int) -> Step:
        arrivals = self._travelling.join(self._release(begin, until))
        due = arrivals.at < until
        self._travelling = arrivals.take(np.flatnonzero(~due))
        rows = np.flatnonzero(due)
        arrivals = arrivals.take(rows.take(_order(arrivals.at.take(rows))))
        alone = ~fits_batch(arrivals.faults)
        if self._fleet.batch_size is None:
            return Step(self._singles(arrivals, np.flatnonzero(alone)), self._summarize(arrivals))
        singles, batched = arrivals.take(np.flatnonzero(alone)), arrivals.take(np.flatnonzero(~alone))
        bounds = [*_batch_firsts(batched.at, self._fleet.batch_size).tolist(), len(batched.at)]
        # A gateway publishes a batch with all its reports when the last of these reports has arrived.
        batched = batched._replace(at=np.repeat(batched.at[np.array(bounds[1:], dtype=np.intp) - 1], np.diff(bounds)))
        messages = self._damaged(singles)
        messages += [self._batch(batched.cut(first, end)) for first, end in pairwise(bounds)]
        messages.sort(key=attrgetter("publish_time"))
        return Step(EncodedMessages.of(messages), self._summarize(singles.join(batched)))

    def _singles(self, arrivals: _Arrivals, alone: Rows) -> EncodedMessages:
        a = arrivals
        messages = encode_messages(self._layout, a.report_ids, a.event_times, a.payloads, a.at)
        return messages.replace(alone, EncodedMessages.of(self._damaged(a.take(alone)))) if len(alone) else messages

    def _damaged(self, arrivals: _Arrivals) -> list[Message]:
        """Encode reports with faults that no batch can hold."""
        data = encode_columns(self._layout, arrivals.report_ids, arrivals.event_times, arrivals.payloads)
        self._injector.damage_messages(arrivals.faults, data, self.rng)
        return list(map(Message, data, arrivals.at.tolist()))

    def _batch(self, arrivals: _Arrivals) -> Message:
        key, a = self._fleet.spec.key, arrivals
        return Message(encode_batch(*key, a.report_ids, a.event_times, a.payloads), int(a.at[0]))

    def _summarize(self, arrivals: _Arrivals) -> Summary:
        sound, copies = arrivals.faults == Fault.NONE, arrivals.ways == _Route.COPY
        closed = arrivals.at >= self._collection.slice_start(arrivals.event_times) + self._collection.closes_after
        return Summary(
            received=len(arrivals.at),
            duplicates=int(copies.sum()),
            late_duplicates=int((copies & closed).sum()),
            late_within=int(((arrivals.ways == _Route.HELD_BACK) & ~closed).sum()),
            late_after=int((sound & closed).sum()),
            malformed=int((~sound).sum()),
        )


def _generators(fleet: Fleet) -> tuple[np.random.Generator, np.random.Generator]:
    """Return generators for all events and for ids, by seed, collection, version and start: hours differ in both."""
    # The name of a collection contains no space, so different keys have different texts.
    key = f"{fleet.seed} {fleet.spec.collection} {fleet.spec.version} {fleet.start_ms}"
    entropy = int.from_bytes(hashlib.sha256(key.encode()).digest())
    rng, ids = map(np.random.default_rng, np.random.SeedSequence(entropy).spawn(2))
    return rng, ids


def _order(times: Times) -> Rows:
    """Sort times stably, by 16 bits at a time, because NumPy uses a fast radix sort for integers of 16 bits."""
    rest = times - times.min(initial=np.iinfo(np.int64).max)
    order = np.argsort(rest.astype(np.uint16), kind="stable")
    while (rest := rest >> 16).any():
        order = order.take(np.argsort(rest.astype(np.uint16).take(order), kind="stable"))
    return order


def _batch_firsts(at: Times, size: int) -> Rows:
    """Return first reports of batches: split in order of arrival by ``BATCH_WAIT``, then by at most ``size``."""
    firsts = np.flatnonzero(np.diff(at // BATCH_WAIT, prepend=-1))
    lengths = np.diff(firsts, append=len(at))
    return np.flatnonzero((np.arange(len(at)) - np.repeat(firsts, lengths)) % size == 0)
