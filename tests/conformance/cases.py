"""A case of the conformance vectors: a spec, its probabilities, reports of devices, and reports that are rejected."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests import build
from tests.mechanisms.protocols import ZONES
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.folds.randomizer import LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.families.input_discriminative.randomizer import InputDiscriminativeEncoding
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.families.subset_selection.randomizer import BlockResponse
from uldp.mechanisms.kernels.block_designs import CyclicDesign
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.protocol.noise import UniformNoise
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.slices.public_slices import SlicedStrata
from uldp.pipelines.clients.vectors import devices_of, report_id, written
from uldp.schemas.arrays import Payloads
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Report
from uldp.schemas.specs.collection import CollectionSpec

_DAY = {"number": {"low": 0, "high": 24}}


def _more(name: str, domain: Mapping[str, Any], epsilon: float, **parameters: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": epsilon, **parameters}}


def _levels(of: Mapping[str, Any]) -> dict[str, Any]:
    levels = {"strict": {"epsilon": 0.5}, "open": {"epsilon": 2.0}}
    return {"domain": {"size": 10}, "mechanism": {"name": "levels", "levels": levels, "of": of}}


_BY = {"os": ["ios", "web"], "channel": ["stable", "beta", "nightly"]}
_TAGS: dict[str, Any] = {"sensitive": [6, 2], "tags": [{"name": "work"}, {"name": "home"}]}
_NESTED: dict[str, Any] = {
    "sensitive": [6, 2],
    "tags": [
        {"name": "work", "zones": ZONES, "zone_epsilon": 2.0},
        {"name": "gym", "zones": ZONES},
        {"name": "home", "zones": ZONES, "zone_epsilon": 0.8},
    ],
}

#: Further examples, at which clients have gone wrong: the order of values and tags, padding, large numbers, and the
#: rounding of sizes.
MORE: dict[str, dict[str, Any]] = {
    "oue of 13 values": _more("oue", {"size": 13}, 2.0),
    "ss of 12 values": _more("ss", {"size": 12}, 0.5),
    "set-ss of the best size": _more("set-ss", {"set": {"of": {"size": 60}, "at_most": 4}}, 0.5),
    "set-ss of pairs of the best size": _more(
        "set-ss", {"pairs": {"of": {"size": 60}, "at_most": 4, "low": -5.0, "high": 7.5}}, 0.5
    ),
    "set-olh of many items": _more("set-olh", {"set": {"of": {"size": 40_000}, "at_most": 5}}, 2.0),
    "prefixes of sets of the best size": _more(
        "prefixes",
        {"set": {"of": {"strings": {"longest": 9, "alphabet": "a-z", "pieces": ["an", "na"]}}, "at_most": 2}},
        2.0,
        step=2,
        depth=3,
        cohorts=32,
    )
    | {"candidates": ["banana", "ananas", "n", "Band"]},
    "set-ss of one symbol": _more("set-ss", {"set": {"of": {"size": 9}, "at_most": 2}}, 4.0),
    "ss of one member": _more("ss", {"size": 5}, 3.0),
    "olh of 10,000 values": _more("olh", {"size": 10_000}, 3.0),
    "olh of the most buckets": _more("olh", {"size": 9}, 11.5),
    "rr of 100,000 values": _more("rr", {"size": 100_000}, 6.0),
    "urr of two tags": _more("urr", {"size": 8}, 1.0) | _TAGS,
    "urr of three tags with zones, two of them nested": _more("urr", {"size": 8}, 3.0) | _NESTED,
    "duchi at a small epsilon": _more("duchi", _DAY, 0.1),
    "geometric at a small epsilon": _more("geometric", _DAY, 0.01),
    "geometric of 64 steps at a large epsilon": _more("geometric", _DAY, 20.0, bins=64),
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
    "bit-flip of a value alone": _more("bit-flip", {"size": 7}, 1.0, bits=3),
    "metric at a large epsilon": _more("metric", {"size": 9}, 12.0),
    "metric of a line without weights": _more("metric", {"size": 9}, 0.1),
    "metric of a grid with corners": _more("metric", {"size": 12}, 1.0, columns=4),
    "metric of a grid without weights": _more("metric", {"size": 12}, 0.5, columns=4),
    "rr of weeks that begin on Monday": _more("rr", {"size": 5}, 1.0) | {"window": {"size": "7d", "offset": "4d"}},
    "rr in slices": _more("rr", {"size": 5}, 1.0) | {"by": _BY},
    "oue in slices": _more("oue", {"size": 13}, 1.0) | {"by": _BY},
    "oue in slices with a permanent response": _more("oue", {"size": 6}, 1.0, lasting_epsilon=3.0) | {"by": _BY},
    "a record in slices": {
        "domain": {"record": {"app": {"size": 5}, "hours": _DAY}},
        "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "sue"}, "hours": {"name": "duchi"}}},
        "by": _BY,
    },
    "marginals of large and small views": _more(
        "marginals",
        {"record": {"version": {"size": 30}, "os": {"size": 11}, "crash": {"size": 2}, "new": {"size": 3}}},
        0.7,
        views=[["os", "version"], ["new", "crash"], ["crash", "os"]],
    ),
    "levels of points": _levels({"name": "pgr"}),
    "levels of designs": _levels({"name": "ubd"}) | {"sensitive": [0, 2, 3, 5, 7, 8]},
}


def case_of(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the case of a spec that has these keys in place of those of ``MINIMAL``."""
    files: dict[str, str] = {}
    spec, data = build.spec(**keys), _portable(build.MINIMAL | keys | {"limits": {"min_reports": 1}}, files)
    mechanism = build_protocol(spec).mechanism
    return {
        "name": name,
        "spec": data,
        "files": files,
        "probabilities": probabilities(mechanism),
        "devices": list(devices_of(spec, name)),
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
    "hit",
    "hits",
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
    if isinstance(mechanism, SlicedStrata):
        return probabilities(mechanism.parts[0])  # all slices have it
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
        return {"scale": mechanism.scale, "matrix": mechanism.matrix.tolist()}
    return {}


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
    message = Report(*spec.key, report_id(0), build.START, payload).encode().hex()
    return {"reason": str(reason), "payload": written(payload), "message": message}
