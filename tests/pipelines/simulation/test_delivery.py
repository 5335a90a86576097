"""What a fleet says it has sent is exactly what a collector finds."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, MINUTE
from tests.messages import read_back
from uldp.collector.columns import ReportColumns, concatenate
from uldp.collector.reader import Decoded, ReportReader
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.simulation.delivery import BATCH_WAIT, publish
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.framing import report_store
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.rejected import count_reasons
from uldp.schemas.specs.collection import CollectionSpec

START = build.START + 7 * MINUTE  # inside of a window, as is the end


def make_spec(
    name: str = "urr", domain: int = 12, *, collection: str = "small", version: int = 2, **window: str
) -> CollectionSpec:
    optimized = name in {"urr", "urap"}
    return build.spec(
        collection=collection,
        version=version,
        domain={"size": domain},
        sensitive=[1, 2, 5] if optimized else "all",
        mechanism={"name": name} if name == "identity" else {"name": name, "epsilon": 1.5},
        tags=[{"name": "home"}, {"name": "work"}] if optimized else [],
        window={"size": "1h", "allowed_lateness": "30m"} | window,
        limits={"max_age": "365d"},  # a copy may come long after a short window
    )


SPEC = make_spec()


def make_truth(spec: CollectionSpec) -> Truth:
    values = np.repeat(np.arange(spec.size), 2)
    tags = np.tile([-1, len(spec.tags) - 1], spec.size)
    weights = 1.0 + np.arange(2 * spec.size) % 7
    return Truth(spec.variables, (Held(values, tags),), weights / weights.sum())


def make_fleet(spec: CollectionSpec = SPEC, **settings: Any) -> Fleet:
    base = {"users": 2000, "seed": 1, "start_ms": START, "duration_ms": 3 * HOUR}
    return Fleet(spec, make_truth(spec), **(base | settings))


def run(fleet: Fleet) -> tuple[list[Message], Summary]:
    steps = list(publish(fleet))
    return [message for step in steps for message in read_back(step.messages)], sum(
        (step.summary for step in steps), Summary()
    )


def decode(spec: CollectionSpec, messages: Sequence[Message], *, judge_lateness: bool = True) -> Decoded:
    return ReportReader([spec], judge_lateness=judge_lateness).decode(messages)


def account(decoded: Decoded) -> Accounting:
    """Count each id once, in the plainest way."""
    ids = [id_.tobytes() for columns in decoded.columns for id_ in columns.report_ids]
    counted, late, rejected = len(set(ids)), decoded.late_reports, decoded.rejected_reports
    return Accounting(decoded.received, counted, len(ids) - counted, late, rejected)


WINDOWS = [
    {"allowed_lateness": "30m"},
    {"size": "10m", "period": "5m", "allowed_lateness": "1m"},
    {"size": "1d", "allowed_lateness": "7d"},
    {"size": "2ms", "allowed_lateness": "3ms"},
    {"size": "2s", "allowed_lateness": "0s"},
]
RATES = st.integers(0, 33).map(lambda rate: rate / 100)
SETTINGS = {
    "users": st.integers(1, 400),
    "seed": st.integers(0, 2**32),
    "duration_ms": st.sampled_from([1, 50, MINUTE, 5 * HOUR]),
    "batch_size": st.none() | st.integers(1, 60),
    **dict.fromkeys(("duplicates", "late", "malformed"), RATES),
}


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.sampled_from(["identity", "urr", "urap", "sue"]),
    st.sampled_from([6, 8, 300]),
    st.sampled_from(WINDOWS),
    st.fixed_dictionaries(SETTINGS),
)
def test_a_collector_finds_what_the_summary_says(
    name: str, domain: int, window: dict[str, str], of_fleet: dict[str, Any]
) -> None:
    spec = make_spec(name, domain, **cast(Any, window))
    messages, summary = run(make_fleet(spec, **of_fleet))
    assert summary.users == of_fleet["users"]
    for judge_lateness in (False, True):
        found = account(decode(spec, messages, judge_lateness=judge_lateness))
        assert found == summary.accounting(judge_lateness=judge_lateness)
        assert found.closes()
    assert all(first.publish_time <= then.publish_time for first, then in pairwise(messages))


def test_equal_arguments_give_equal_bytes() -> None:
    first, second, other = (
        run(make_fleet(seed=seed, duplicates=0.1, late=0.1, malformed=0.1, batch_size=20))[0] for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def columns_of(fleet: Fleet) -> ReportColumns:
    """All reports of a fleet whose reports arrive well, late or twice."""
    return concatenate(decode(fleet.spec, run(fleet)[0], judge_lateness=False).columns)


def ids_of(fleet: Fleet) -> set[bytes]:
    return {id_.tobytes() for id_ in columns_of(fleet).report_ids}


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        make_fleet(start_ms=START + HOUR),
        make_fleet(start_ms=START + 1),
        make_fleet(seed=2),
        make_fleet(make_spec(collection="smaller")),
        make_fleet(make_spec(version=3)),
    ],
    ids=["next hour", "next millisecond", "seed", "collection", "version"],
)
def test_another_hour_seed_collection_or_version_is_another_sample_with_ids_of_its_own(other: Fleet) -> None:
    first, second = columns_of(make_fleet()), columns_of(other)
    assert len(ids_of(make_fleet())) == len(ids_of(other)) == 2000
    assert ids_of(make_fleet()).isdisjoint(ids_of(other))
    # Half of the symbols of two independent samples would have to agree by chance; all would, were they the same.
    assert (first.payloads == second.payloads).mean() < 0.5


def test_ids_are_those_of_the_reports_whatever_the_network_does_to_them() -> None:
    assert ids_of(make_fleet(late=0.2, duplicates=0.2, batch_size=20)) == ids_of(make_fleet())


def delays_of_singles(messages: Sequence[Message]) -> npt.NDArray[np.int64]:
    times = [report_store().decode(message.data)[1]["event_time"] for message in messages]
    published = [message.publish_time for message in messages]
    return np.array(published, dtype=np.int64) - np.array(times, dtype=np.int64)


def test_copies_are_the_same_bytes_about_a_minute_later() -> None:
    messages, summary = run(make_fleet(users=5000, duplicates=0.4))
    published = defaultdict(list)
    for message in messages:
        published[message.data].append(message.publish_time)
    gaps = np.array([times[1] - times[0] for times in published.values() if len(times) == 2])
    assert Counter(map(len, published.values())) == {1: 5000 - len(gaps), 2: len(gaps)}
    assert summary.duplicates == len(gaps)
    assert abs(len(gaps) - 2000) < 4 * np.sqrt(5000 * 0.4 * 0.6)
    assert abs(gaps.mean() - 60_000) < 4 * 60_000 / np.sqrt(len(gaps))


def test_half_of_the_late_reports_miss_the_closing_of_their_window() -> None:
    n = 4000
    messages, summary = run(make_fleet(users=n, late=1.0))
    published = np.array([message.publish_time for message in messages])
    observed = published - delays_of_singles(messages)
    after_end = published - (observed // HOUR + 1) * HOUR
    # Evenly over half an hour of allowed lateness, then evenly over the hour after it.
    quarters, _ = np.histogram(after_end, np.arange(7) * 15 * MINUTE)
    assert quarters.sum() == n
    expected = np.array([2, 2, 1, 1, 1, 1]) / 8
    assert (np.abs(quarters - n * expected) < 4 * np.sqrt(n * expected * (1 - expected))).all()
    assert (summary.late_within, summary.late_after) == (quarters[:2].sum(), quarters[2:].sum())


@pytest.mark.parametrize("batch_size", [None, 10])
@pytest.mark.parametrize(
    ("name", "domain", "reasons"),
    [
        ("urr", 12, {Reason.OUT_OF_DOMAIN}),
        ("identity", 12, {Reason.OUT_OF_DOMAIN}),
        ("urap", 12, {Reason.IMPOSSIBLE_PAYLOAD, Reason.WRONG_LENGTH}),
        ("sue", 12, {Reason.IMPOSSIBLE_PAYLOAD, Reason.WRONG_LENGTH}),
        # Whole bytes of sensitive symbols: any bits are possible.
        ("sue", 8, {Reason.WRONG_LENGTH}),
    ],
)
def test_each_fault_is_rejected_for_its_reason(
    name: str, domain: int, reasons: set[Reason], batch_size: int | None
) -> None:
    spec = make_spec(name, domain)
    messages, summary = run(make_fleet(spec, users=1000, malformed=1.0, batch_size=batch_size))
    rejected = count_reasons(decode(spec, messages).rejected)
    assert summary.malformed == sum(rejected.values()) == 1000
    always = {Reason.TOO_EARLY, Reason.NOT_AVRO, Reason.TRUNCATED, Reason.UNKNOWN_SCHEMA, Reason.UNKNOWN_VERSION}
    assert set(rejected) == always | reasons
    share = 1 / len(rejected)
    assert max(abs(n - 1000 * share) for n in rejected.values()) < 4 * np.sqrt(1000 * share * (1 - share))


def test_a_gateway_publishes_full_batches_and_waits_a_second_at_most() -> None:
    messages, _ = run(make_fleet(users=3000, duration_ms=10_000, batch_size=50))
    sizes = [decode(SPEC, [message]).received for message in messages]
    assert sum(sizes) == 3000
    assert max(sizes) == 50
    last_of_second = {message.publish_time // BATCH_WAIT: index for index, message in enumerate(messages)}
    # About 300 reports a second: only the last batch of a second is not full.
    partial = {index for index, size in enumerate(sizes) if size < 50}
    assert partial <= set(last_of_second.values())


@pytest.mark.parametrize("lateness", ["0s", "1s", "7d"])
def test_a_step_is_small_however_many_reports_come_at_once(lateness: str) -> None:
    fleet = make_fleet(make_spec(allowed_lateness=lateness), users=600_000, duration_ms=5 * MINUTE, late=1.0)
    sizes = [step.summary.received for step in publish(fleet)]
    assert sum(sizes) == 600_000
    assert max(sizes) < 150_000
