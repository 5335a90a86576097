"""Devices that report in two windows, for ``uldp verify``: docs/client/testing.md."""

from pathlib import Path

import numpy as np

from uldp.mechanisms import Device, MemoryLedger
from uldp.schemas import CollectionSpec, Message
from uldp.transforms.io.local.stream import LocalStream

spec, rng = CollectionSpec.load("daily.yaml"), np.random.default_rng(0)  # a seed, for this page alone
now, day = 1_767_603_600_000, 86_400_000
for label in ("flat", "clinic"):
    devices = [Device(spec, {}, rng, MemoryLedger()) for number in range(1000)]
    stream = LocalStream.create(Path(f"daily-{label}"))
    for time in (now, now + day):
        reports = [device.report(spec.index(label), event_time_ms=time) for device in devices]
        stream.append([Message(data, time, {"uldp-sender": f"device {n}"}) for n, data in enumerate(reports)])
    stream.close()
