"""What devices of a spec send by known draws: numbers and bytes that a client in any language gives too."""

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.devices.table import device_table
from uldp.schemas.arrays import Floats
from uldp.schemas.framing import report_store
from uldp.schemas.records import Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.variable import Variable

#: The devices of a case, but no further one after so many draws.
DEVICES, MOST_DRAWS = 6, 300
#: The time of the first report of each device, 2026-01-01T09:00:00Z.
START, HOUR = 1_767_258_000_000, 3_600_000
#: A float is an integer below this, divided by this.
FLOATS = 1 << 53

Draw = tuple[int, int]
Size = int | tuple[int, ...]


class Recorded:
    """Draws from a seed, the same under each version of Python and NumPy, and keeps a list of them.

    If ``large``, half of the floats are 7/8 or more, so that reports without noise are among few of them.
    """

    def __init__(self, seed: str, *, large: bool = False) -> None:
        #: Pairs, the number below which an integer is drawn, and it.
        self.draws: list[Draw] = []
        self._source, self._large = random.Random(seed), large  # noqa: S311 - it has to be known

    def random(self, size: Size) -> Floats:
        """Draw floats from 0 to 1."""
        return np.ldexp(self.integers(0, FLOATS, size).astype(np.float64), -53)

    def integers(self, low: int, high: int, size: Size) -> npt.NDArray[np.int64]:
        """Draw integers from ``low`` to ``high`` - 1."""
        drawn = [
            (high - low, self._below(high - low)) for _ in range(math.prod(size) if isinstance(size, tuple) else size)
        ]
        self.draws += drawn
        return low + np.array([number for _, number in drawn], dtype=np.int64).reshape(size)

    def _below(self, below: int) -> int:
        number = self._source.getrandbits(64)
        if self._large and below == FLOATS and self._source.getrandbits(1):
            number |= 7 * FLOATS // 8
        return number % below


def vectors(spec: CollectionSpec) -> dict[str, Any]:
    """Return the table of a spec, and what its devices send, as JSON; ValueError if it has no table for devices.

    Integers above 2^53 are texts, because JavaScript would round them.
    """
    case = {"name": spec.collection, "table": device_table(spec), "devices": list(devices_of(spec, spec.collection))}
    return cast(dict[str, Any], readable(case))


def readable(node: Any) -> Any:
    """Return JSON with texts in place of the integers that JavaScript would round."""
    if isinstance(node, Mapping):
        return {key: readable(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [readable(value) for value in node]
    return str(node) if isinstance(node, int) and abs(node) > 1 << 53 else node


def devices_of(spec: CollectionSpec, name: str) -> Iterator[dict[str, Any]]:
    """Yield devices with what they hold, and their reports; ``name`` decides the draws."""
    draws = 0
    for number in range(DEVICES):
        if draws <= MOST_DRAWS:
            device = _device(spec, number, f"{name}, device {number}")
            draws += sum(len(report["draws"]) for report in device["reports"])
            yield device


def _device(spec: CollectionSpec, number: int, seed: str) -> dict[str, Any]:
    """Return the reports of a device: one, or two of its permanent response."""
    levels = list(getattr(spec.mechanism, "levels", ()))
    level = levels[number % len(levels)] if levels else None
    chosen = {name: _choice(variable, number) for name, variable in spec.variables.items()}
    values: dict[str, Any] = {name: value for name, (value, _) in chosen.items()}
    tags = {name: tag for name, (_, tag) in chosen.items()}
    hidden = {name: {values[name]: tag} if tag else {} for name, tag in tags.items()}
    only = "" in spec.variables
    by = None if spec.by is None else {name: values[number % len(values)] for name, values in spec.by.items()}
    randomness = Recorded(seed, large=number % 2 == 1)
    memory = build_protocol(spec).mechanism.memory
    ledger = MemoryLedger() if memory or spec.budget else None
    device = Device(spec, hidden[""] if only else hidden, randomness, ledger, level)
    reports = []
    for day in range(1 + memory):
        randomness.draws = []
        time = START + day * max(milliseconds(spec.window.size), HOUR)  # in another window
        made = Report(**report_store().decode(device.report(values[""] if only else values, time, by))[1])
        sent = Report(made.collection, made.version, report_id(number + day), made.event_time, made.payload)
        reports.append(
            {
                "event_time": made.event_time,
                "report_id": sent.report_id.hex(),
                "draws": randomness.draws,
                "payload": written(made.payload),
                "message": sent.encode().hex(),
            }
        )
    # Pairs in place of a mapping, whose keys would be texts.
    shown = {name: [*value.items()] if isinstance(value, Mapping) else value for name, value in values.items()}
    user: dict[str, Any] = {"value": shown[""], "tag": tags[""]} if only else {"value": shown, "tag": tags}
    return user | ({"level": level} if levels else {}) | ({"by": by} if by else {}) | {"reports": reports}


def report_id(number: int) -> bytes:
    """Return the id of a report of a device."""
    return bytes([*range(15), number])


def written(payload: int | bytes) -> int | str:
    """Return a payload as JSON has it, bytes in hexadecimal digits."""
    return payload.hex() if isinstance(payload, bytes) else payload


def _choice(variable: Variable, number: int) -> tuple[object, str | None]:
    """Return what a device holds of a variable, and the tag behind which it hides it."""
    first, *others = variable.kind.examples(variable.size, variable.candidates)
    hidden = [(value, tag.name) for tag in variable.tags for value in (first, *others[:1])]
    choices = [(first, None), *hidden, *((value, None) for value in others)]
    return choices[number % len(choices)]
