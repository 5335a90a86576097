"""The way from a simulated fleet to the stream: obfuscated reports as messages in order of publication, memory bounded.

Its randomness follows from the seed, the collection, its version and the start, so the same fleet gives the same bytes,
and who knows the seed knows every true value; devices draw from ``SystemRandomness``.
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
from uldp.mechanisms.pum import preprocess
from uldp.pipelines.simulation.faults import Fault, FaultInjector, Faults, fits_batch
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.schemas.arrays import Floats, Payloads, ReportIds, Rows, Times
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.codec.encode import encode_batch, encode_columns, encode_messages
from uldp.schemas.durations import milliseconds
from uldp.schemas.records import Message

#: Mean delays in milliseconds: of the network, and of a second copy after the first.
NETWORK_DELAY = 2_000
COPY_DELAY = 60_000
#: Reports that come too late do so within a window's size, but no more than this, after the closing.
LATEST = 3_600_000
#: How long a gateway waits for a batch to fill, in milliseconds.
BATCH_WAIT = 1_000

# Reports of a step: enough that NumPy's calls are amortized. A few reports take more steps, so that progress shows.
_AT_ONCE = 1 << 16
_MIN_STEPS = 100


class Step(NamedTuple):
    """What a fleet publishes in one step of the simulation: messages in order, and what they are."""

    messages: EncodedMessages
    summary: Summary


def publish(fleet: Fleet) -> Iterator[Step]:
    """Publish all reports of a fleet, step by step.

    Memory is that of one step and of what is on its way: reports for seconds, copies for about a minute. Those that
    are held back are no more than a number for each window until they are released.
    """
    network = _Network(fleet)
    end = fleet.start_ms + fleet.duration_ms
    # A step ends the batches that are being filled, so it is no shorter than they wait, unless it fills many.
    steps = max(-(-fleet.users // _AT_ONCE), min(_MIN_STEPS, fleet.duration_ms // BATCH_WAIT))
    bounds = np.unique(np.linspace(fleet.start_ms, end, steps + 1).astype(np.int64))
    users = network.rng.multinomial(fleet.users, np.diff(bounds) / fleet.duration_ms)
    for (begin, until), n in zip(pairwise(bounds.tolist()), users.tolist(), strict=True):
        network.observe(begin, until, n)
        yield from network.publish(begin, until)
    # All have reported; what is left is on its way or held back.
    yield from network.publish(end, network.last + 1)


class _Route(IntEnum):
    """How a report came to be published when it was."""

    DIRECT = 0
    COPY = 1
    HELD_BACK = 2


class _Arrivals(NamedTuple):
    """Reports on their way, as columns of equal length: when they arrive, how, with which fault, and their fields."""

    at: Times
    ways: npt.NDArray[np.int8]
    faults: Faults
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads

    def take(self, rows: Rows) -> "_Arrivals":
        # ndarray.take copies rows several times as fast as an index in brackets.
        return _Arrivals(*map(methodcaller("take", rows, axis=0), self))

    def cut(self, first: int, end: int) -> "_Arrivals":
        return _Arrivals(*map(itemgetter(slice(first, end)), self))

    def join(self, *others: "_Arrivals") -> "_Arrivals":
        parts = [part for part in (self, *others) if len(part.at)]
        return _Arrivals(*map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else (parts or [self])[0]


class _Held(NamedTuple):
    """Numbers of reports that are held back, as columns: from and until when they happen and are published."""

    begins: Times
    ends: Times
    opens: Times
    closes: Times
    numbers: npt.NDArray[np.int64]


class _Network:
    """What lies between the devices and the stream, at one moment of the simulation."""

    def __init__(self, fleet: Fleet) -> None:
        self.rng, self._ids = _generators(fleet)
        self._fleet = fleet
        self._collection = serve([fleet.spec])[fleet.spec.key]
        self._layout = Layout.of(report_schema(), *fleet.spec.key, self._collection.bits_width)
        self._injector = FaultInjector(self._collection, self._layout)
        nothing = np.empty(0, dtype=np.int64)
        self._travelling = self._obfuscate(nothing, nothing, _Route.DIRECT)
        self._held = _Held(*[nothing] * 5)

    @property
    def last(self) -> int:
        """The last millisecond in which a report may be published that has been observed."""
        return int(max(self._travelling.at.max(initial=0), self._held.closes.max(initial=0) - 1))

    def observe(self, begin: int, until: int, users: int) -> None:
        """Let users report at times of [begin, until)."""
        fleet, rng = self._fleet, self.rng
        times = rng.integers(begin, until, users)
        well = max(1 - fleet.late - fleet.malformed - fleet.duplicates, 0.0)
        # The times are i.i.d., so which of them are late, damaged and so on may be decided by their order.
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
        """Draw true values and obfuscate them into reports, the first of which are damaged."""
        n = len(times)
        values, tags = self._fleet.truth.sample(n, self.rng)
        payloads = self._collection.mechanism.perturb(preprocess(values, tags, self._fleet.spec.size), self.rng)
        faults = np.zeros(n, dtype=np.int8)
        faults[:damaged] = self._injector.draw(damaged, self.rng)
        self._injector.damage_columns(faults, times, payloads)
        ids = self._ids.integers(0, 1 << 64, (n, 2), dtype=np.uint64)
        return _Arrivals(at, np.full(n, way, dtype=np.int8), faults, ids, times, payloads)

    def _hold_back(self, times: Times) -> None:
        """Count reports that are held back, by time slice: any time in it is as likely, so none needs to be kept."""
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
        """Publish what arrives in [begin, until), in as many steps as it needs."""
        middle = (begin + until) // 2
        _, _, share = self._open(begin, until)
        expected = (self._travelling.at < until).sum() + (self._held.numbers * share).sum()
        if expected > 2 * _AT_ONCE and middle > begin:
            yield from self.publish(begin, middle)
            yield from self.publish(middle, until)
        elif expected:
            yield self._step(begin, until)

    def _open(self, begin: int, until: int) -> tuple[Times, Times, Floats]:
        """Say for those held back from and until when in [begin, until) they are published, and what share of them."""
        opens, closes = np.maximum(self._held.opens, begin), np.minimum(self._held.closes, until)
        return opens, closes, np.clip((closes - opens) / np.maximum(self._held.closes - opens, 1), 0, 1)

    def _release(self, begin: int, until: int) -> _Arrivals:
        """Draw which of the reports that are held back are published in [begin, until), and obfuscate them."""
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
        # A gateway publishes a batch, and with it all its reports, when the last of them has arrived.
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
        """Encode reports that no batch can hold."""
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
    """Return a generator of all that happens, and one of report ids alone.

    Both are keyed by seed, collection, version and start, so that two simulated hours are two samples with ids of their
    own, under the same seed too. The n-th report to be made has the n-th id, whatever the network does to it.
    """
    # No collection has a space in its name, so no two keys are the same text.
    key = f"{fleet.seed} {fleet.spec.collection} {fleet.spec.version} {fleet.start_ms}"
    entropy = int.from_bytes(hashlib.sha256(key.encode()).digest())
    rng, ids = map(np.random.default_rng, np.random.SeedSequence(entropy).spawn(2))
    return rng, ids


def _order(times: Times) -> Rows:
    """Sort times stably. NumPy sorts integers of 16 bits by counting them, so these are sorted by 16 bits at a time."""
    rest = times - times.min(initial=np.iinfo(np.int64).max)
    order = np.argsort(rest.astype(np.uint16), kind="stable")
    while (rest := rest >> 16).any():
        order = order.take(np.argsort(rest.astype(np.uint16).take(order), kind="stable"))
    return order


def _batch_firsts(at: Times, size: int) -> Rows:
    """Split reports, in order of arrival, into batches: by full ``BATCH_WAIT``, and these by ``size``.

    Returns:
        The index of the first report of each batch.
    """
    firsts = np.flatnonzero(np.diff(at // BATCH_WAIT, prepend=-1))
    lengths = np.diff(firsts, append=len(at))
    return np.flatnonzero((np.arange(len(at)) - np.repeat(firsts, lengths)) % size == 0)
