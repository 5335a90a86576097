"""Flags against windows that earn them; corrections on a stream are in tests/transforms/test_aggregate.py."""

from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.collector.collections import ServedCollection, serve
from uldp.collector.columns import ReportColumns
from uldp.collector.counting import count_support
from uldp.collector.groups import Place
from uldp.collector.partial import Partial
from uldp.collector.sealing import WindowSum, flags_of, p_values_of, seal
from uldp.collector.signals import SenderCounts, sender_digest
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.arrays import Payloads
from uldp.schemas.flags import Flag, withheld
from uldp.schemas.pane import Accounting, Pane, PaneKind


def target(mechanism: str = "rr", **limits: object) -> ServedCollection:
    named = {"name": mechanism} | ({} if mechanism == "identity" else {"epsilon": 1.0})
    spec = build.spec(domain={"size": 20}, mechanism=named, limits=limits)
    return serve([spec])[spec.key]


def honest(of: ServedCollection, n: int) -> Partial:
    """The counts of n honest devices that all hold the value 3."""
    mechanism = build_protocol(of.spec).mechanism
    payloads = mechanism.perturb(np.full(n, 3), np.random.default_rng(1))
    return build.part(mechanism.statistic(payloads), Accounting(received=n, counted=n))


def flags(of: ServedCollection, partial: Partial) -> list[Flag]:
    total = WindowSum.of(partial, 0)
    return list(flags_of(of, total, *p_values_of(of.protocol.decoder, [total])))


@pytest.mark.parametrize("mechanism", ["identity", "rr", "oue", "sue"])
def test_honest_devices_raise_no_flag(mechanism: str) -> None:
    of = target(mechanism)
    assert flags(of, honest(of, 10_000)) == []


@pytest.mark.parametrize(("limit", "raised"), [(100, []), (101, [Flag.FEW_REPORTS])])
def test_few_reports(limit: int, raised: list[Flag]) -> None:
    of = target(min_reports=limit)
    assert flags(of, honest(of, 100)) == raised


@pytest.mark.parametrize(
    ("limits", "raised"),
    [
        ({}, []),
        ({"max_rejected_ratio": 0.2, "max_duplicate_ratio": 0.3}, []),
        ({"max_rejected_ratio": 0.19, "max_duplicate_ratio": 0.3}, [Flag.REJECTED_RATIO]),
        ({"max_rejected_ratio": 0.2, "max_duplicate_ratio": 0.29}, [Flag.DUPLICATE_RATIO]),
    ],
)
def test_ratios_are_of_the_received_reports(limits: dict[str, Any], raised: list[Flag]) -> None:
    of = target(**limits)
    others = build.part(accounting=Accounting(received=60, duplicate=30, late=10, rejected=20))
    assert flags(of, honest(of, 40) + others) == raised


def test_a_collection_does_not_stop_at_duplicates() -> None:
    """Otherwise whoever sends copies would silence it."""
    limits = build.spec(limits={"max_duplicate_ratio": 0.1, "max_rejected_ratio": 0.1, "when_exceeded": "stop"}).limits
    assert not withheld(limits, [Flag.DUPLICATE_RATIO])
    assert withheld(limits, [Flag.DUPLICATE_RATIO, Flag.REJECTED_RATIO])


def test_a_window_of_which_all_is_rejected_has_too_few_reports_and_too_many_rejected() -> None:
    of = target(max_rejected_ratio=0.5)
    rejected = build.part(accounting=Accounting(received=1, rejected=1))
    assert flags(of, rejected) == [Flag.FEW_REPORTS, Flag.REJECTED_RATIO]


@pytest.mark.parametrize(("improbable", "raised"), [(2, []), (3, [Flag.IMPROBABLE_PAYLOADS])])
def test_improbable_payloads(improbable: int, raised: list[Flag]) -> None:
    """Three where 0.01 are expected come by chance once in 6 million windows, two once in 20,000."""
    of = target("oue")
    assert flags(of, honest(of, 10_000) + build.part(improbable=improbable)) == raised


def test_improbable_counts() -> None:
    """Under RR each symbol is reported by a share of 1 / (e + 19) at the least, whatever the true values."""
    of = target()
    counts = honest(of, 10_000).cells
    assert isinstance(counts, np.ndarray)
    counts[3] += counts[7]
    counts[7] = 0
    forged = build.part(counts, Accounting(received=10_000, counted=10_000))
    assert flags(of, forged) == [Flag.IMPROBABLE_COUNTS]


def counted(of: ServedCollection, payloads: Payloads) -> Partial:
    """The part of a window with these reports, as a job counts it."""
    n, none = len(payloads), np.zeros((0, 2), dtype=np.uint64)
    columns = ReportColumns(*of.spec.key, none, np.zeros(n, np.int64), payloads, np.zeros(n, np.uint8))
    ((_, partial),) = count_support(of, {Place(of.spec.key, 0): [columns]}, ServedCollection.span_start)
    return partial


def test_200_equal_payloads_of_20_000_are_flagged_and_honest_ones_are_not() -> None:
    """1 % of the reports, which the counts alone do not show."""
    spec = build.spec(domain={"size": 100}, mechanism={"name": "ss", "epsilon": 1.0})
    of, rng = serve([spec])[spec.key], np.random.default_rng(5)
    payloads = of.mechanism.perturb(rng.integers(0, 100, 20_000), rng)
    assert flags(of, counted(of, payloads)) == []
    forged = payloads.take(np.maximum(np.arange(20_000), 200), axis=0)
    assert flags(of, counted(of, forged)) == [Flag.EQUAL_PAYLOADS]
    parts = counted(of, forged[:100]), counted(of, forged[100:150]), counted(of, forged[150:])
    assert flags(of, sum(parts, Partial())) == [Flag.EQUAL_PAYLOADS]


@pytest.mark.parametrize(("limit", "raised"), [(3, []), (2, [Flag.BUSY_SENDER])])
def test_busy_sender(limit: int, raised: list[Flag]) -> None:
    of = target(max_reports_per_sender=limit)
    senders = SenderCounts.of(np.array([sender_digest(key, build.SENDER_KEY) for key in "abaca"], dtype=np.uint64))
    assert flags(of, honest(of, 100) + build.part(senders=senders)) == raised


@pytest.mark.parametrize(
    ("keys", "raised"),
    [
        ({}, False),
        ({"opens": "2026-01-01T09:00Z", "closes": "2026-01-01T10:00Z"}, False),
        ({"opens": "2026-01-01T09:00:00.001Z"}, True),
        ({"closes": "2026-01-01T09:59:59.999Z"}, True),
    ],
)
def test_a_window_for_whose_whole_length_its_spec_was_not_open_is_flagged(keys: dict[str, str], raised: bool) -> None:
    spec = build.spec(**keys)
    of, pane = serve([spec])[spec.key], Pane(PaneKind.ON_TIME, 0)
    sealed = seal(of, WindowSum.of(honest(of, 1000), 0), build.START, build.START + build.HOUR, pane, {})
    assert (Flag.PARTLY_OPEN in sealed.flags) == raised


def test_a_pane_without_reports_has_a_single_0_whatever_its_domain() -> None:
    sealed = seal(target(), WindowSum.of(Partial(), 0), 0, 3_600_000, Pane(PaneKind.ON_TIME, 0), {})
    assert sealed.cells.tolist() == [0]
