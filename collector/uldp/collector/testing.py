"""For the tests of whoever counts with this library: reports of a known truth, and whether estimates cover it."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.schemas.errors import RequestError
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import is_listed
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.table import TableName


def fake_messages(spec: CollectionSpec, truth: Mapping[str, int], time_ms: int, *, seed: int) -> list[Message]:
    """Return the reports of devices that hold known values, each published when it was made.

    Args:
        truth: How many devices hold each label. Each has a ledger of its own, and hides nothing.
        time_ms: When all of them report, in milliseconds since 1970.
        seed: The same one gives the same payloads, but other ids: what is random on devices is predictable only here.

    Raises:
        RequestError: if the collection is not of values, or has no such label.
    """
    index = {label: number for number, label in enumerate(_labels(spec))}
    if unknown := [label for label in truth if label not in index]:
        raise RequestError(f"{spec.collection} has no value {quote(unknown[0])}")
    randomness = np.random.default_rng(seed)
    values = [index[label] for label, users in truth.items() for _ in range(users)]
    devices = (Device(spec, {}, randomness, ledger=MemoryLedger()) for _ in values)
    return [Message(device.report(value, time_ms), time_ms) for device, value in zip(devices, values, strict=True)]


def covers(spec: CollectionSpec, truth: Mapping[str, int], *, misses: int = 0) -> Callable[[Iterable[Estimate]], None]:
    """Return a check that there are estimates, and that the intervals of each cover the shares of a truth.

    The check raises AssertionError, so that Beam takes it too: ``assert_that(estimates, covers(spec, truth))``.

    Args:
        truth: How many devices hold each label; 0 for a label that it lacks.
        misses: How many intervals of an estimate may miss. At a level of 95 %, about one in twenty does.
    """
    labels, users = _labels(spec), sum(truth.values())

    def check(estimates: Iterable[Estimate]) -> None:
        estimates = list(estimates)
        if not estimates:
            raise AssertionError(f"{spec.collection}: there is no estimate")
        for estimate in estimates:
            table = estimate.table(TableName.SHARE)
            if table is None or table.low is None or table.high is None:
                raise AssertionError(f"{spec.collection} by {estimate.estimator}: the shares have no intervals")
            rows = zip(labels, table.low.tolist(), table.high.tolist(), strict=True)
            missed = [
                f"{quote(label)} has the share {share:.4g}, and the interval is [{low:.4g}, {high:.4g}]"
                for label, low, high in rows
                if not low <= (share := truth.get(label, 0) / users) <= high
            ]
            if len(missed) > misses:
                raise AssertionError(f"{spec.collection} by {estimate.estimator}: {'; '.join(missed)}")

    return check


def _labels(spec: CollectionSpec) -> list[str]:
    if not is_listed(spec.domain.kind):
        raise RequestError(f"{spec.collection} is no collection of values; name one whose domain has labels or a size")
    return list(spec.labels)
