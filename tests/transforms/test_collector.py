"""The collector without Beam against the transforms: the same statistics, estimates and rejected records."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, SENDER_KEY, START
from uldp.collector.collector import Collector
from uldp.mechanisms.devices.device import Device
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import SENDER, Message
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.results.write import WriteResults

SPECS = {
    "fixed": build.spec(limits={"min_reports": 20}),
    "sliding": build.spec(collection="sliding", window={"size": "3h", "period": "1h"}, limits={"min_reports": 20}),
    "capped": build.spec(
        collection="capped", limits={"max_reports_per_sender": 3, "cap_senders": True, "max_rejected_ratio": 0.2}
    ),
    "exact": build.spec(collection="exact", dedup="exact", mechanism={"name": "oue", "epsilon": 1.0}),
    "next": build.spec(version=2, mechanism={"name": "ss", "epsilon": 2.0}, estimator=["auto", "empirical"]),
}


def messages(specs: Sequence[CollectionSpec], seed: int) -> list[Message]:
    """Reports of all specs, one by one and in batches, with copies, wrong clocks, and what is no report."""
    rng = np.random.default_rng(seed)
    found = []
    for spec in specs:
        device = Device(spec, hidden={}, randomness=rng)
        for number in range(240):
            at = START + int(rng.integers(0, 5 * HOUR))
            early = HOUR * (number % 40 == 0)
            body = device.report(int(rng.integers(5)), event_time_ms=at + early)
            found.append(Message(body, at + MINUTE, {SENDER: f"s{rng.integers(30)}"}, f"m{spec.key}{number}"))
        reports = [build.report(number, number % 2, START, spec.key) for number in range(1000, 1030)]
        if spec.mechanism.name == "urr":
            found += [Message(build.batch(reports).encode(), START + MINUTE, {SENDER: "batcher"})] * 2
    found += [Message(b"no report", START), Message(b"", -5), Message(found[0].data, START + 400 * 24 * HOUR)]
    copies = [found[int(row)] for row in rng.integers(0, len(found), 100)]
    return [*found, *copies]


def by_pipeline(
    specs: Sequence[CollectionSpec], sent: Sequence[Message], out: Path, **settings: Any
) -> tuple[list[Statistic], list[Estimate], list[Rejected]]:
    """What a bounded job writes: with one shard, reports of a sender come in the order in which they were sent."""
    with beam.Pipeline("FnApiRunner") as pipeline:
        created = pipeline | beam.Create([*sent], reshuffle=False).with_output_types(Message)
        _ = created | Aggregate(specs, shards=1, sender_key=SENDER_KEY, **settings) | WriteResults(str(out))
    folder = ResultsFolder(out, private=out)
    return [*folder.statistics()], [*folder.estimates()], [*folder.rejected()]


def texts(records: Sequence[Any]) -> Counter[str]:
    """Records as text, in no order; a flag that was read from a file is a text already."""
    return Counter(re.sub(r"<Flag\.[A-Z_]+: ('[a-z_]+')>", r"\1", str(record.to_avro())) for record in records)


def places(rejected: Sequence[Rejected]) -> set[tuple[str, str, bytes, int]]:
    """Reason, detail, body and publish time of each message."""
    return {(each.reason, each.detail, *message) for each in rejected for message in each.each()}


@pytest.mark.parametrize("deduplicate", [True, False])
def test_what_a_backfill_gives(deduplicate: bool, tmp_path: Path) -> None:
    specs = [*SPECS.values()]
    sent = messages(specs, seed=3)
    collector = Collector(specs, deduplicate=deduplicate, sender_key=SENDER_KEY)
    rejected = collector.add(sent)
    statistics, estimates, records = by_pipeline(specs, sent, tmp_path, deduplicate=deduplicate)
    assert texts([*collector.statistics()]) == texts(statistics)
    assert texts([*collector.estimates()]) == texts(estimates)
    assert places(rejected) == places(records)  # a folder holds a message of a place once
    assert {flag for each in statistics for flag in each.flags}  # the comparison sees flags


def test_messages_may_be_added_in_parts_and_results_read_between() -> None:
    specs = [*SPECS.values()]
    sent = messages(specs, seed=4)
    whole, parts = (Collector(specs, sender_key=SENDER_KEY) for _ in range(2))
    whole.add(sent)
    for first in range(0, len(sent), 97):
        parts.add(sent[first : first + 97])
        n = sum(each.accounting.received for each in parts.statistics() if each.collection != "sliding")
        assert n > 0
    assert texts([*parts.statistics()]) == texts([*whole.statistics()])
