"""Vectors of a spec: what its devices send by known draws, the same each time."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests import build
from tests.mechanisms.protocols import specs
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.vectors import readable, vectors
from uldp.schemas.framing import report_store


def nodes(node: Any) -> Iterator[Any]:
    yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(each)


@pytest.mark.parametrize("name", specs())
def test_each_spec_has_vectors_with_its_table(name: str) -> None:
    spec = build.spec(**specs()[name])
    found = vectors(spec)
    assert found == vectors(spec)
    assert found["table"] == readable(device_table(spec))
    assert all(abs(each) <= 1 << 53 for each in nodes(found) if isinstance(each, int))
    for device in found["devices"]:
        for report in device["reports"]:
            decoded = report_store().decode(bytes.fromhex(report["message"]))[1]
            sent = decoded["payload"].hex() if isinstance(decoded["payload"], bytes) else decoded["payload"]
            assert (decoded["event_time"], sent) == (report["event_time"], report["payload"])


def test_devices_with_a_budget_have_a_ledger() -> None:
    assert vectors(build.spec(budget={"epsilon": 20, "every": "30d"}))["devices"]
