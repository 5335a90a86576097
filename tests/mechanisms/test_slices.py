"""Public attributes: slices of one mechanism, against collections of their own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.estimates import say_the_same
from uldp.collector.estimating import tables_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.slices.public_slices import SlicedDecoder, SlicedStrata
from uldp.schemas.arrays import Counts
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.slices import attributes_of, slice_of
from uldp.schemas.table import TableName

#: 50 slices of 100 values, of a mechanism that partitions its reports and of one that does not.
COUNTRIES, VALUES = 25, 100
BY = {"os": ["android", "ios"], "country": [f"c{number}" for number in range(COUNTRIES)]}
NAMES = ["rr", "oue", "olh", "block", "set-ss", pytest.param("tree", marks=pytest.mark.nightly)]


def spec_of(name: str, **more: Any) -> CollectionSpec:
    domains = {
        "block": {"number": {"low": 0, "high": 1}},
        "set-ss": {"set": {"of": {"labels": [f"v{number}" for number in range(VALUES)]}, "at_most": 2}},
    }
    domain = domains.get(name, {"size": VALUES})
    return build.spec(domain=domain, mechanism={"name": name, "epsilon": 2.0}, **more)


def held(n: int, rng: np.random.Generator) -> list[Held]:
    """Draw what n users hold: values depend on their slices, and some slices have hardly any users, or none."""
    os, country = (rng.random(n) < 0.2).astype(np.int64), np.minimum(rng.zipf(1.5, n) - 1, COUNTRIES - 2)
    values = np.minimum(rng.geometric(0.1, n) - 1 + 3 * country + 20 * os, VALUES - 1)
    return [Held(column, np.full(n, -1)) for column in (values, os, country)]


def reports(name: str, n: int, seed: int = 0) -> tuple[LdpProtocol, Counts, list[Counts]]:
    """Return the protocol, the cells of all reports, and those of the reports of each slice."""
    protocol, rng = build_protocol(spec_of(name, by=BY)), np.random.default_rng(seed)
    values, *slices = held(n, rng)
    if name == "block":
        values = Held(values.values / VALUES, values.tags)
    if name == "set-ss":
        values = Held(np.where(values.values[:, np.newaxis] == 0, -1, values.values[:, np.newaxis]), values.tags)
    payloads = protocol.perturb([values, *slices], rng)
    mechanism = protocol.mechanism
    assert isinstance(mechanism, SlicedStrata)
    assert mechanism.possible(payloads).all()
    alone = build_protocol(spec_of(name)).mechanism
    return (
        protocol,
        mechanism.statistic(payloads),
        [alone.statistic(own) for _, _, own in mechanism.split_payloads(payloads)],
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_slice_is_a_collection_of_its_own_and_the_total_is_that_of_all(name: str) -> None:
    n = 8000
    protocol, cells, of_slices = reports(name, n)
    assert isinstance(protocol.decoder, SlicedDecoder)
    alone = build_protocol(spec_of(name))
    sizes = [part.n for part in protocol.decoder.parts(cells, n)]
    assert sum(sizes) == n
    assert 0 in sizes
    tables = protocol.decoder.tables(cells, n, "auto")
    expected: list[tuple[tuple[str, ...], Counts, int]] = [((), np.sum(of_slices, axis=0), n)]
    names = spec_of(name, by=BY).slices
    assert names is not None
    expected += [each for each in zip(names.names, of_slices, sizes, strict=True) if each[2]]
    for of, own, reports_of_slice in expected:
        mine = [table for table in tables if slice_of(table.of) == of]
        for table, other in zip(mine, alone.decoder.tables(own, reports_of_slice, "auto"), strict=True):
            assert say_the_same(replace(table, of=attributes_of(table.of)), other)


@pytest.mark.parametrize("name", ["rr", "oue"])
def test_a_device_keeps_one_response_in_all_slices(name: str) -> None:
    # With so large a difference of budgets, the noise of each report is hardly there, and the response shows.
    mechanism = {"name": name, "epsilon": 18.0, "lasting_epsilon": 18.01}
    spec = build.spec(domain={"size": VALUES}, mechanism=mechanism, by={"os": ["android", "ios"]})
    once, ledger = build_protocol(spec.whole).mechanism, MemoryLedger()
    device, sent = Device(spec, {}, ledger=ledger), []
    for hour, os in enumerate(["android", "ios", "ios", "android"]):
        message = device.report(7, build.START + hour * build.HOUR, by={"os": os})
        payload = report_store().decode(message)[1]["payload"]
        number, own = (payload[0], payload[2:]) if isinstance(payload, bytes) else divmod(payload, once.size)
        assert number == (os == "ios")
        sent.append(own)
    # A report of rr is its response but in one case of 10^8; those of oue have one response, and noise of their own.
    assert name == "oue" or len(set(sent)) == 1
    with ledger.change() as content:
        spent = [spending.epsilon for spending in content.spent]
        assert spent[0] == 18.0
        assert sum(epsilon or 0.0 for epsilon in spent) == pytest.approx(18.01)


def published(sizes: list[int], least: int) -> dict[tuple[str, ...], int]:
    spec = build.spec(
        domain={"size": 2},
        mechanism={"name": "rr", "epsilon": 1.0},
        by={"os": [f"s{number}" for number in range(len(sizes))]},
        limits={"min_reports": least},
    )
    cells = np.array([[n // 2, n - n // 2] for n in sizes]).ravel()
    statistic = build.pane(cells)
    found = tables_of(build_protocol(spec).decoder, spec, statistic, "empirical")
    return {table.of: table.n for table in found if table.name is TableName.SHARE}


def test_slices_of_few_reports_are_not_published_and_do_not_follow_from_the_others() -> None:
    assert published([200, 300, 100], 100) == {(): 600, ("os=s0",): 200, ("os=s1",): 300, ("os=s2",): 100}
    assert published([200, 300, 0], 100) == {(): 500, ("os=s0",): 200, ("os=s1",): 300}
    # The total less the others would be the table of 40 users: the smallest of the others is left out too.
    assert published([200, 300, 40], 100) == {(): 540, ("os=s1",): 300}
    assert published([200, 300, 60, 70], 100) == {(): 630, ("os=s0",): 200, ("os=s1",): 300}


def test_the_device_half_has_public_attributes() -> None:
    halves = [spec_of("rr"), spec_of("rr", by=BY), spec_of("rr", by={**BY, "os": ["ios", "android"]})]
    assert len({each.device_digest for each in halves}) == 3
