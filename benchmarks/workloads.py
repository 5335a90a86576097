"""The messages that are aggregated: made as they are asked for, the same ones every time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.arrays import Counts, Payloads
from uldp.schemas.codec.columnar import Layout, report_schema
from uldp.schemas.codec.encode import encode_batch, encode_columns
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds

#: Reports of a chunk, and of a message that holds many.
CHUNK, BATCH_SIZE = 10_000, 1000
#: To obfuscate bits takes longer than to count them, so that reports draw their payloads from a pool.
POOL = 20_000

SIZE, EPSILON = 625, 1.0
WINDOW, WINDOWS = timedelta(hours=1), 10
START = 1_767_225_600_000
#: Milliseconds that no device's clock may be ahead.
FAR_AHEAD = 10**10
#: Names of different lengths, as collections have.
COLLECTIONS = (
    "check-ins",
    "page-loads",
    "search-terms",
    "battery-levels",
    "dictation-locales",
    "blocked-third-party",
    "startup-seconds-by-os",
    "crashed-system-library",
    "keyboard-layouts-in-use",
    "emoji-by-keyboard-locale",
)


@dataclass(frozen=True, eq=False)
class Workload:
    """Reports of some collections, of random values and event times, all of their windows alike.

    Attributes:
        specs: The collections.
        chunk: Makes the messages of a chunk, given its index.
        chunks: How many there are.
        reports: How many reports they hold in all.
        pool: The payloads that reports draw from.
    """

    specs: tuple[CollectionSpec, ...]
    chunk: Callable[[int], list[Message]]
    chunks: int
    reports: int
    pool: Payloads

    def messages(self) -> Iterator[Message]:
        """Make all messages."""
        for index in range(self.chunks):
            yield from self.chunk(index)

    def windowed(self, **window: timedelta) -> "Workload":
        """Return the same messages for collections with another ``window``."""
        specs = tuple(CollectionSpec.parse(spec.model_dump() | {"window": window}) for spec in self.specs)
        return replace(self, specs=specs)


def collection_specs(mechanism: str, collections: int, size: int) -> tuple[CollectionSpec, ...]:
    """Describe collections of ``size`` values in windows of an hour.

    If the mechanism is utility-optimized, every tenth value is sensitive. No estimate is published, because the graphs
    that are compared count, and the naive one estimates nothing. ``benchmarks.estimators`` measures what a pane takes.
    """
    sensitive = list(range(0, size, 10)) if mechanism in {"urr", "urap", "uhr", "ubd", "uss"} else "all"
    names = COLLECTIONS[:collections] + tuple(f"collection-{number}" for number in range(10, collections))
    return tuple(
        CollectionSpec.parse(
            {
                "collection": name,
                "version": 1,
                "domain": {"size": size},
                "sensitive": sensitive,
                "mechanism": {"name": mechanism, "epsilon": EPSILON},
                "window": {"size": WINDOW},
                "limits": {"min_reports": 1 << 40},
            }
        )
        for name in names
    )


def singles(mechanism: str, reports: int, *, collections: int = 10, size: int = SIZE) -> Workload:
    """Messages of one report each, their collections in random order."""
    return _workload(_single_chunk, mechanism, reports, collections, size)


def batches(
    mechanism: str, reports: int, *, collections: int = 10, size: int = SIZE, mixed: bool = False, forged: bool = False
) -> Workload:
    """Messages of ``BATCH_SIZE`` reports each, of one collection.

    A batch is of one window, drawn at random: a gateway sends what has come in a moment. If ``mixed``, each report is
    of a random window. If ``forged``, none can be counted, for one of three reasons, drawn at random for each report.
    """
    return _workload(partial(_batch_chunk, mixed, forged), mechanism, reports, collections, size)


ChunkMaker = Callable[[tuple[CollectionSpec, ...], Payloads, int], list[Message]]


def _workload(make: ChunkMaker, mechanism: str, reports: int, collections: int, size: int) -> Workload:
    specs = collection_specs(mechanism, collections, size)
    rng = np.random.default_rng(1)
    pool = build_protocol(specs[0]).mechanism.perturb(rng.integers(0, size, POOL), rng)
    chunks = -(-reports // CHUNK)
    return Workload(specs, partial(make, specs, pool), chunks, chunks * CHUNK, pool)


def _single_chunk(specs: tuple[CollectionSpec, ...], pool: Payloads, index: int) -> list[Message]:
    rng = np.random.default_rng((2, index))
    ids, times, payloads = rng.integers(0, 1 << 64, (CHUNK, 2), np.uint64), _event_times(CHUNK, rng), _draw(pool, rng)
    of = rng.integers(0, len(specs), CHUNK)
    messages = np.empty(CHUNK, dtype=np.object_)
    width = pool.shape[1] if pool.ndim == 2 else None
    for collection, spec in enumerate(specs):
        rows = np.flatnonzero(of == collection)
        messages[rows] = encode_columns(_layout(*spec.key, width), ids[rows], times[rows], payloads[rows])
    # Messages come into memory one after the other, as those of a broker do, and not collection by collection.
    received = Bodies.of(messages.tolist())
    return list(map(Message, map(received.__getitem__, range(CHUNK)), times.tolist()))


@cache
def _layout(collection: str, version: int, width: int | None) -> Layout:
    return Layout.of(report_schema(), collection, version, width)


def _batch_chunk(
    mixed: bool, forged: bool, specs: tuple[CollectionSpec, ...], pool: Payloads, index: int
) -> list[Message]:
    rng = np.random.default_rng((2, index))
    ids, times, payloads = rng.integers(0, 1 << 64, (CHUNK, 2), np.uint64), _event_times(CHUNK, rng), _draw(pool, rng)
    if not mixed:
        starts = milliseconds(WINDOW) * rng.integers(0, WINDOWS, CHUNK // BATCH_SIZE)
        times = START + starts.repeat(BATCH_SIZE) + times % milliseconds(WINDOW)
    published = times.reshape(-1, BATCH_SIZE).max(axis=1).tolist()
    if forged:
        reason = rng.integers(0, 3, CHUNK)
        payloads[reason == 0] = specs[0].size
        times[reason == 1] = -1
        times[reason == 2] += FAR_AHEAD
    messages = []
    for number, start in enumerate(range(0, CHUNK, BATCH_SIZE), start=index * (CHUNK // BATCH_SIZE)):
        rows = slice(start, start + BATCH_SIZE)
        data = encode_batch(*specs[number % len(specs)].key, ids[rows], times[rows], payloads[rows])
        messages.append(Message(data, published[start // BATCH_SIZE]))
    return messages


def _draw(pool: Payloads, rng: np.random.Generator) -> Payloads:
    return pool[rng.integers(0, len(pool), CHUNK)]


def _event_times(n: int, rng: np.random.Generator) -> Counts:
    return START + rng.integers(0, WINDOWS * milliseconds(WINDOW), n)
