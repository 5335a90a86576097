"""The conformance vectors of ``uldp.schemas.vectors``: numbers and bytes that a client in any language gives too.

``python -m tests.conformance.vectors`` writes the files anew, always the same. A file has the name of a mechanism. It
has a case for each example of it in ``tests/mechanisms/protocols.py``, and for each of ``MORE``. So a new mechanism
needs nothing here, unless its domain is of a new kind (``_choices``). Two files are of no mechanism: ``messages.json``
and ``functions.json``. Their inputs are edited by hand, and this module writes the results beside them.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests import build
from tests.conformance.draws import Recorded
from tests.mechanisms import protocols
from uldp.collector.parse import MAX_MESSAGE_BYTES
from uldp.mechanisms.block_designs import CyclicDesign
from uldp.mechanisms.block_response import BlockResponse
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.device import Device
from uldp.mechanisms.input_discriminative import InputDiscriminativeEncoding
from uldp.mechanisms.ledger import MemoryLedger
from uldp.mechanisms.linear_hashing import LinearHashing
from uldp.mechanisms.local_hashing import hash_symbols
from uldp.mechanisms.mechanism import Mechanism, UniformNoise
from uldp.mechanisms.memoized import Memoized
from uldp.mechanisms.metric import MetricMechanism
from uldp.mechanisms.projective_geometry import ProjectiveGeometryResponse
from uldp.mechanisms.projective_response import ProjectiveResponse
from uldp.mechanisms.strata import Strata
from uldp.mechanisms.strings import hash_positions, string_symbol
from uldp.schemas.arrays import Payloads
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.framing import header, load_schema, report_store
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Report, ReportBatch
from uldp.schemas.variable import Variable

FOLDER = Path(__file__).parents[2] / "schemas" / "uldp" / "schemas" / "vectors"
#: Numbers of a client may differ from those of a file by this share of them.
TOLERANCE = 1e-12
#: The devices of a case, but no further one after so many draws.
DEVICES, MOST_DRAWS = 6, 300

_DAY = {"number": {"low": 0, "high": 24}}


def _more(name: str, domain: Mapping[str, Any], epsilon: float, **parameters: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": epsilon, **parameters}}


def _levels(of: Mapping[str, Any]) -> dict[str, Any]:
    levels = {"strict": {"epsilon": 0.5}, "open": {"epsilon": 2.0}}
    return {"domain": {"size": 10}, "mechanism": {"name": "levels", "levels": levels, "of": of}}


#: Further examples, at which clients have gone wrong: padding, large numbers, and the rounding of sizes.
MORE: dict[str, dict[str, Any]] = {
    "oue of 13 values": _more("oue", {"size": 13}, 2.0),
    "ss of 12 values": _more("ss", {"size": 12}, 0.5),
    "ss of one member": _more("ss", {"size": 5}, 3.0),
    "olh of 10,000 values": _more("olh", {"size": 10_000}, 3.0),
    "olh of the most buckets": _more("olh", {"size": 9}, 11.5),
    "rr of 100,000 values": _more("rr", {"size": 100_000}, 6.0),
    "duchi at a small epsilon": _more("duchi", _DAY, 0.1),
    "block of 1,024 bins": _more("block", _DAY, 1.0),
    "block of 1,024 bins, square wave": _more("block", _DAY, 4.0, width="square-wave"),
    "block of 256 bins, piecewise": _more("block", _DAY, 1.0, bins=256, width="piecewise"),
    "block at a small epsilon": _more("block", _DAY, 0.1, bins=64),
    "urap with the best theta": _more("urap", {"size": 9}, 1.0, theta="auto") | {"sensitive": [1, 2, 5]},
    "uss of the best size": _more("uss", {"size": 12}, 0.5) | {"sensitive": [0, 2, 3, 5, 7, 8, 10, 11]},
    "ubd of squares": _more("ubd", {"size": 12}, 0.2) | {"sensitive": [0, 2, 3, 5, 7, 8, 10, 11]},
    "ubd of fourth powers": _more("ubd", {"size": 40}, 1.0, w=9) | {"sensitive": [*range(3, 40)]},
    "ubd of a field of four": _more("ubd", {"size": 20}, 1.0, w=5) | {"sensitive": [*range(20)][::-1]},
    "hrr of one value more than a power of two": _more("hrr", {"size": 17}, 2.0),
    "linear-olh of 10,000 values": _more("linear-olh", {"size": 10_000}, 3.0),
    "pgr of 10,000 values": _more("pgr", {"size": 10_000}, 3.0),
    "the with a threshold": _more("the", {"size": 9}, 2.0, theta=0.75),
    "she at a small epsilon": _more("she", {"size": 2}, 0.1),
    "metric at a large epsilon": _more("metric", {"size": 9}, 12.0),
    "levels of points": _levels({"name": "pgr"}),
    "levels of designs": _levels({"name": "ubd"}) | {"sensitive": [0, 2, 3, 5, 7, 8]},
}


_RETIRED = {"collection": "c", "version": 2, "retired": True}
#: The keys of the specs of a collector, in place of those of ``MINIMAL``.
SERVED: list[dict[str, Any]] = [dict(build.MINIMAL), build.MINIMAL | _RETIRED]
_HEADER = header(load_schema("report"))
_YEAR = 365 * 24 * build.HOUR
_COLUMN = {"report_ids": bytes(32), "event_times": build.START.to_bytes(8, "little") * 2}
#: Messages that this collector rejects, with the name of the mistake. It receives them at ``build.START``.
REJECTED: list[tuple[str, Reason, Report | ReportBatch]] = [
    ("a collection without a spec", Reason.UNKNOWN_COLLECTION, build.report(1, 0, key=("d", 1))),
    ("the next version", Reason.UNKNOWN_VERSION, build.report(1, 0, key=("c", 3))),
    ("a version that is retired", Reason.RETIRED_VERSION, build.report(1, 0, key=("c", 2))),
    ("seconds", Reason.EXPIRED, build.report(1, 0, build.START // 1000)),
    ("microseconds", Reason.INVALID_TIME, build.report(1, 0, build.START * 1000)),
    ("before 1970", Reason.INVALID_TIME, build.report(1, 0, -1)),
    ("a clock that is a day ahead", Reason.TOO_EARLY, build.report(1, 0, build.START + 24 * build.HOUR)),
    ("a report of two years ago", Reason.EXPIRED, build.report(1, 0, build.START - 2 * _YEAR)),
    ("two ids and one symbol", Reason.MALFORMED, ReportBatch("c", 1, **_COLUMN, symbols=bytes(4))),
    ("two ids and no time", Reason.MALFORMED, ReportBatch("c", 1, bytes(32), b"", symbols=bytes(8))),
    ("bytes for symbols", Reason.WRONG_PAYLOAD, ReportBatch("c", 1, **_COLUMN, bits=bytes(2))),
]


def documents() -> dict[str, Any]:
    """Return the content of each file, by its name."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for name, keys in (protocols.specs() | MORE).items():
        case = _case(name, keys)
        cases.setdefault(case["spec"]["mechanism"]["name"], []).append(case)
    found: dict[str, Any] = {
        f"{name}.json": {"mechanism": name, "tolerance": TOLERANCE, "cases": of} for name, of in cases.items()
    }
    return found | {"messages.json": _messages(read("messages.json")), "functions.json": _functions()}


def read(name: str) -> Any:
    """Return the content of a file of vectors."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def load(case: Mapping[str, Any], folder: Path) -> CollectionSpec:
    """Return the spec of a case, whose files go into a folder."""
    for name, text in case["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return CollectionSpec.parse(case["spec"], base=folder)


def _case(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    files: dict[str, str] = {}
    spec, data = build.spec(**keys), _portable(build.MINIMAL | keys | {"limits": {"min_reports": 1}}, files)
    mechanism = build_protocol(spec).mechanism
    return {
        "name": name,
        "spec": data,
        "files": files,
        "probabilities": probabilities(mechanism),
        "devices": list(_devices(spec, name)),
        "rejected": list(_rejected(spec, mechanism)),
    }


def _portable(node: Any, files: dict[str, str]) -> Any:
    """Return a spec whose files are named without their folder, and put their text into ``files``."""
    if isinstance(node, Mapping):
        return {key: _portable(value, files) for key, value in node.items()}
    if isinstance(node, list):
        return [_portable(value, files) for value in node]
    if isinstance(node, str) and node.endswith(".csv"):
        files[Path(node).name] = Path(node).read_text(encoding="utf-8")
        return Path(node).name
    return node


#: The numbers that a mechanism may have beside its p and q, or in place of them.
_NUMBERS = (
    "noise_probability",
    "flip_probability",
    "bit_probabilities",
    "theta",
    "q",
    "chosen",
    "buckets",
    "cohorts",
    "hashes",
    "rows",
    "grid",
    "width",
)


def probabilities(mechanism: Mechanism) -> dict[str, Any]:
    """Return the probabilities of a mechanism: p and q of each symbol if it has them, and what else it draws by."""
    if isinstance(mechanism, Strata):
        return {"shares": mechanism.shares.tolist(), "parts": [probabilities(part) for part in mechanism.parts]}
    if isinstance(mechanism, Memoized):
        return probabilities(mechanism.once) | {"noise on the permanent response": mechanism.noise.tolist()}
    found = {name: getattr(mechanism, name) for name in _NUMBERS if hasattr(mechanism, name)} | _parameters(mechanism)
    if isinstance(mechanism, UniformNoise):
        found["uniform_probability"] = mechanism.uniform_probability
    channel = getattr(mechanism, "channel", None)
    if channel is not None:
        p, q = (np.unique(each) for each in (channel.p, channel.q))
        alike = len(p) == len(q) == 1
        found |= {"p": p.item(), "q": q.item()} if alike else {"p": channel.p.tolist(), "q": channel.q.tolist()}
    return found


def _parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Return the numbers of a mechanism that a spec determines in a way of its own."""
    if isinstance(mechanism, LinearHashing | ProjectiveGeometryResponse):
        return {"g": mechanism.space.g, "m": mechanism.space.m}
    if isinstance(mechanism, BlockResponse):
        design = mechanism.design
        of = {"difference set": design.set.tolist()} if isinstance(design, CyclicDesign) else {}
        return {"blocks": design.blocks} | of
    if isinstance(mechanism, InputDiscriminativeEncoding):
        return {"p and q of groups, over 2^53": mechanism.laws}
    if isinstance(mechanism, MetricMechanism):
        return {"matrix": mechanism.matrix.tolist()}
    return {}


def _devices(spec: CollectionSpec, name: str) -> Iterator[dict[str, Any]]:
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
    values = {name: value for name, (value, _) in chosen.items()}
    tags = {name: tag for name, (_, tag) in chosen.items()}
    hidden = {name: {int(values[name]): tag} if tag else {} for name, tag in tags.items()}
    only = "" in spec.variables
    randomness = Recorded(seed, large=number % 2 == 1)
    memory = build_protocol(spec).mechanism.memory
    device = Device(spec, hidden[""] if only else hidden, randomness, MemoryLedger() if memory else None, level)
    reports = []
    for day in range(1 + memory):
        randomness.draws = []
        time = build.START + day * build.HOUR
        made = Report(**report_store().decode(device.report(values[""] if only else values, time))[1])
        sent = Report(made.collection, made.version, _id(number + day), made.event_time, made.payload)
        reports.append(
            {
                "event_time": made.event_time,
                "report_id": sent.report_id.hex(),
                "draws": randomness.draws,
                "payload": _written(made.payload),
                "message": sent.encode().hex(),
            }
        )
    held: dict[str, Any] = {"value": values[""], "tag": tags[""]} if only else {"value": values, "tag": tags}
    return held | ({"level": level} if levels else {}) | {"reports": reports}


def _id(number: int) -> bytes:
    return bytes([*range(15), number])


def _written(payload: int | bytes) -> int | str:
    return payload.hex() if isinstance(payload, bytes) else payload


def _choice(variable: Variable, number: int) -> tuple[int | float | str, str | None]:
    """Return what a device holds of a variable, and the tag behind which it hides it."""
    choices = _choices(variable)
    return choices[number % len(choices)]


def _choices(variable: Variable) -> list[tuple[int | float | str, str | None]]:
    if (number := variable.domain.number) is not None:
        return [(number.low + part * (number.high - number.low), None) for part in (0, 1, 0.3, 0.5, 2, -1)]
    if variable.domain.strings is not None:
        return [(text, None) for text in variable.candidates]
    last = variable.size - 1
    hidden: list[tuple[int | float | str, str | None]] = [
        (value, tag.name) for tag in variable.tags for value in (0, last)
    ]
    return [(0, None), *hidden, (last, None), (last // 2, None)]


def _rejected(spec: CollectionSpec, mechanism: Mechanism) -> Iterator[dict[str, Any]]:
    """Yield messages of this collection that a collector rejects."""
    form = mechanism.form
    if form.symbols is not None:
        for symbol in (form.symbols, 2**31 - 1, -1):
            yield _bad(spec, Reason.OUT_OF_DOMAIN, symbol)
        yield _bad(spec, Reason.WRONG_PAYLOAD, bytes(1))
        return
    assert form.width is not None
    yield _bad(spec, Reason.WRONG_PAYLOAD, 0)
    for width in {form.width - 1, form.width + 1}:
        yield _bad(spec, Reason.WRONG_LENGTH, bytes(width))
    candidates = [
        bytes(form.width),
        b"\xff" * form.width,
        bytes(form.width - 1) + b"\x01",
        b"\xc0" + bytes(form.width - 1),
        bytes(form.width - 1) + b"\x80",
        b"\x01\x00".ljust(form.width, b"\xff")[: form.width],
    ]
    different = list(dict.fromkeys(candidates))
    columns: Payloads = np.array([list(each) for each in different], dtype=np.uint8)
    for payload, possible in zip(different, mechanism.possible(columns).tolist(), strict=True):
        if not possible:
            yield _bad(spec, Reason.IMPOSSIBLE_PAYLOAD, payload)


def _bad(spec: CollectionSpec, reason: Reason, payload: int | bytes) -> dict[str, Any]:
    message = Report(*spec.key, _id(0), build.START, payload).encode().hex()
    return {"reason": str(reason), "payload": _written(payload), "message": message}


def _messages(written: Any) -> Any:
    """Return messages with their records, messages that are none, and messages that collectors of ``SERVED`` reject."""
    return written | {
        "positive": [each | {"message": record(each).encode().hex()} for each in written["positive"]],
        "served": SERVED,
        "publish_time": build.START,
        "rejected": [
            {"name": name, "reason": str(reason), "message": sent.encode().hex()} for name, reason, sent in REJECTED
        ]
        + [
            {
                "name": "zeros behind a header",
                "reason": "too_large",
                "message": _HEADER.hex(),
                "zeros": MAX_MESSAGE_BYTES,
            }
        ],
    }


def record(vector: Mapping[str, Any]) -> Report | ReportBatch:
    """Return the record of a message of ``messages.json``, in which bytes are written in hex."""
    fields: dict[str, Any] = {
        name: bytes.fromhex(value) if isinstance(value, str) and name != "collection" else value
        for name, value in vector["record"].items()
    }
    return Report(**fields) if vector["type"] == "Report" else ReportBatch(**fields)


def _functions() -> Any:
    """Return results of the functions that a client needs, by their arguments."""
    written = read("functions.json")
    return written | {
        "hash": [each | _hash(each["seed"], each["symbol"], each["buckets"]) for each in written["hash"]],
        "zones": [each | _zones(each["zones"], each["zone_epsilon"]) for each in written["zones"]],
        "strings": [each | _string(each) for each in written["strings"]],
    }


def _hash(seed: int, symbol: int, buckets: int) -> dict[str, Any]:
    (bucket,) = hash_symbols(np.array([seed]), np.array([symbol]), buckets).tolist()
    return {"bucket": bucket, "payload": (seed.to_bytes(4, "little") + bucket.to_bytes(2, "little")).hex()}


def _string(asked: Mapping[str, Any]) -> dict[str, Any]:
    symbol = string_symbol(asked["text"], asked["longest"])
    positions = hash_positions(np.array(asked["cohort"]), np.array(symbol), asked["hashes"], asked["size"])
    return {"symbol": symbol.to_bytes(6, "little").hex(), "positions": positions.tolist()}


def _zones(zones: int, zone_epsilon: float) -> dict[str, Any]:
    response = ProjectiveResponse(zones, zone_epsilon)
    return {
        "points": response.points,
        "last_plane": response.hyperplanes[-1].tolist(),
        "uniform_probability": response.uniform_probability,
        "weight": response.points * response.on_plane,
    }


def text(node: Any, indent: str = "") -> str:
    """Write JSON with everything on one line that has room on it, in ASCII: a string may turn the text around."""
    line, inner = json.dumps(node), indent + " "
    if not isinstance(node, dict | list) or not node or len(indent) + len(line) <= 110:
        return line
    if isinstance(node, dict):
        entries = [f"{inner}{json.dumps(key)}: {text(value, inner)}" for key, value in node.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if all(isinstance(each, list | tuple | int | float) for each in node):  # many in a line
        wrapped = textwrap.wrap(", ".join(map(json.dumps, node)), 110, initial_indent=inner, subsequent_indent=inner)
        return "[\n" + "\n".join(wrapped) + f"\n{indent}]"
    return "[\n" + ",\n".join(inner + text(value, inner) for value in node) + f"\n{indent}]"


if __name__ == "__main__":
    for name, content in documents().items():
        (FOLDER / name).write_text(text(content) + "\n", encoding="utf-8")
