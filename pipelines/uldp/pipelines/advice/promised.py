"""Of rankings and records: the errors that mechanisms promise beforehand, by a formula, where shares are equal.

A ranking has no others to compare. Mechanisms for a record are compared by their tables of two attributes, each with
the parameters that its family names; those without such tables know each attribute better, and nothing of two together.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import yaml

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import RECORD, Ranking
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.specs.specfile import read_spec

_HEADINGS = ("mechanism", "with", "of two", "of one")


@runtime_checkable
class OfTables(Protocol):
    """A decoder that has tables of several attributes."""

    def distances(self, n: int) -> Mapping[int, float]:
        """Return the l2 distance of tables of so many attributes from the truth to expect from n reports."""


@dataclass(frozen=True)
class Promise:
    """What a mechanism for a record promises."""

    mechanism: Mapping[str, Any]  # its keys
    #: The root of the mean squared l2 distance of the tables of two attributes from the truth; None without.
    pairs: float | None
    single: float  # that of the tables of one attribute


def promised_spec(path: Path, below: Path | None) -> CollectionSpec | None:
    """Read a spec; None if it is not one of a ranking or of a record; ValueError if it is invalid."""
    spec = CollectionSpec.load(path, below=below)
    return spec if spec.domain.kind in (Ranking.name, RECORD) else None


def promised_advice(path: Path, spec: CollectionSpec, below: Path | None, epsilon: float, users: int) -> str:
    """Return the mechanisms' errors, and the spec with the best; ValueError without such an epsilon or mechanism."""
    keys = read_spec(path)
    assert isinstance(keys, dict)  # the spec is valid
    lasting = {key: keys["mechanism"][key] for key in ("lasting_epsilon",) if key in keys["mechanism"]}
    budgets = {"epsilon": epsilon, **lasting}
    lines = [f"epsilon {epsilon:g}, {users:,} users", ""]
    if spec.domain.kind == Ranking.name:
        best: Mapping[str, Any] = {"name": spec.mechanism.name, **budgets}
        decoder = _decoder({**keys, "mechanism": best, "estimator": "auto"}, path, below)
        lines += [text for heading, text in decoder.describe(users, "auto") if heading == "errors"]
        note = "the mechanism of the spec"
    else:
        promises, left_out = _promises(keys, budgets, spec, path, below, users)
        rows = [_HEADINGS, *map(_cells, promises)]
        lines += [f"{first:<10}  {views:<8}  {two:>8}  {one:>8}" for first, views, two, one in rows]
        lines += [
            "",
            "of two, of one: l2 distance of tables of so many attributes from the truth, in the mean, at equal shares",
            *left_out,
        ]
        best, note = promises[0].mechanism, "the best of these for tables of two attributes"
    written = {**keys, "mechanism": dict(best), "estimator": "auto"}
    text = yaml.safe_dump(written, sort_keys=False, default_flow_style=None, allow_unicode=True, width=100).rstrip()
    return "\n".join([*lines, "", f"# {best['name']}, {note}; check it with uldp check", text])


def _decoder(keys: Mapping[str, Any], path: Path, below: Path | None) -> Decoder:
    """Return the decoder of all users; ValueError if the mechanism does not suit the domain."""
    return build_protocol(CollectionSpec.parse(keys, base=path.parent, below=below)).of_all.decoder


def _promises(
    keys: Mapping[str, Any],
    budgets: Mapping[str, Any],
    spec: CollectionSpec,
    path: Path,
    below: Path | None,
    users: int,
) -> tuple[list[Promise], list[str]]:
    """Return what mechanisms promise, the best tables of two attributes first, and why others are left out."""
    found: list[Promise] = []
    left_out: list[str] = []
    sizes = {name: variable.size for name, variable in spec.variables.items()}
    # What else is asked of the same counts changes none of these errors, and not every mechanism answers it.
    asked = {key: value for key, value in keys.items() if key != "given"}
    for mechanism in _mechanisms(budgets, sizes):
        try:
            decoder = _decoder({**asked, "mechanism": mechanism, "estimator": "auto"}, path, below)
        except ValueError as error:
            reason = str(error).splitlines()[0].removeprefix("spec: ")
            left_out.append(f"{' '.join(_cells(Promise(mechanism, None, 0.0))[:2])} is left out: {reason}")
            continue
        if isinstance(decoder, OfTables):
            distances = decoder.distances(users)
            found.append(Promise(mechanism, distances[2], distances[1]))
        else:
            squares = float((decoder.forecast(users) ** 2).sum()) / len(sizes)
            found.append(Promise(mechanism, None, math.sqrt(squares)))
    if not any(each.pairs for each in found):
        raise RequestError(f"{path}: no mechanism has tables of two attributes of this record: {left_out[0]}")
    return sorted(found, key=lambda each: each.pairs or math.inf), left_out


def _mechanisms(budgets: Mapping[str, Any], sizes: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
    """Yield the keys of the mechanisms for records, with the parameters that their families name."""
    for name in mechanism_names():
        for parameters in family(name).record_examples(sizes, budgets["epsilon"]):
            yield {"name": name, **budgets, **parameters}


def _cells(promise: Promise) -> tuple[str, ...]:
    name, *words = (value for value in promise.mechanism.values() if isinstance(value, str))
    two = "none" if promise.pairs is None else f"{promise.pairs:.3g}"
    return name, ", ".join(words) or "-", two, f"{promise.single:.3g}"
