"""The specs that a results directory keeps: each in a folder of its own, without files elsewhere that it needs."""

import csv
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from uldp.pipelines.jobs.identity import name_of
from uldp.pipelines.results.specs import KeptSpecs, kept_text
from uldp.schemas.arrays import Floats
from uldp.schemas.regular_files import read_regular, sync_folder
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.zones import zones_text
from uldp.transforms.io.durable_files import make_folder, write_files
from uldp.transforms.io.folders import below, is_remote
from uldp.transforms.io.remote import copy_below


@dataclass(frozen=True)
class KeptSpec:
    """A spec that needs no files elsewhere.

    Labels and candidates move into it, backgrounds and zones into files beside it. Numbers take the place of auto,
    because another release may choose others. Two of them are equal whatever the order of their keys is.
    """

    name: str  # the name of its folder
    data: Mapping[str, Any]  # its keys, with values as of JSON
    beside: Mapping[str, bytes]  # the content of the files beside it, by name

    @classmethod
    def of(cls, spec: CollectionSpec) -> Self:
        """Return what a results directory keeps of a spec."""
        data, files = spec.model_dump(mode="json", exclude_none=True), dict[str, bytes]()
        data["mechanism"].update(spec.mechanism.record_parameters(spec.variables))
        for name, variable in spec.variables.items():
            domain, tags, beside, mechanism = data["domain"], data.get("tags", []), data, data["mechanism"]
            if name:
                domain = beside = domain["record"][name]
                tags, mechanism = domain["tags"], mechanism.get("of", {}).get(name, {})
            for key in type(variable.parameters).model_fields:
                number = getattr(variable.parameters, key)
                if number != getattr(variable.mechanism, key):
                    mechanism[key] = number
            if beside.pop("candidates_file", None) is not None:
                beside["candidates"] = list(variable.candidates)
            variable.kind.without_files(domain)
            for tag, weights, strength in zip(tags, variable.background, variable.strength, strict=True):
                if "background" in tag:
                    tag["background"] = f"{name}.{tag['name']}.csv" if name else f"{tag['name']}.csv"
                    # No half of a share is a whole number, so the file itself gives no strength.
                    files[tag["background"]] = _background(variable.labels, weights / 2)
                    if not math.isnan(strength):
                        tag["strength"] = float(strength)
            for tag, zones in zip(tags, variable.zones, strict=True):
                if zones is not None:
                    tag["zones"] = f"{name}.{tag['name']}.zones.csv" if name else f"{tag['name']}.zones.csv"
                    files[tag["zones"]] = zones_text(zones, variable.labels).encode()
        return cls(name_of(spec), data, files)

    @property
    def digest(self) -> bytes:
        """A digest of all of it, in the order of its keys."""
        digest = hashlib.sha256(json.dumps([self.name, self.data]).encode())
        for name, content in sorted(self.beside.items()):
            digest.update(json.dumps([name, len(content)]).encode() + content)
        return digest.digest()

    @property
    def files(self) -> dict[tuple[str, ...], bytes]:
        """The content of its files, by the parts of their path in a results directory."""
        files = {**self.beside, "spec.yaml": kept_text(self.data).encode()}
        return {("specs", self.name, name): files[name] for name in sorted(files)}


def keep_specs(out: str, specs: Sequence[CollectionSpec]) -> None:
    """Write specs, and the files that they name, into a local or remote results directory."""
    if specs and not is_remote(out):
        _make_folders(Path(out, "specs"), [name_of(spec) for spec in specs])
    write_files([(below(out, *parts), data) for spec in specs for parts, data in KeptSpec.of(spec).files.items()])


def _make_folders(within: Path, names: Sequence[str]) -> None:
    """Make folders, and write all their names to the disk at once: of a thousand, one by one takes seconds."""
    make_folder(within.absolute())
    for name in names:
        (within / name).mkdir(exist_ok=True)
    sync_folder(within)


def is_kept(spec: CollectionSpec, out: Path) -> bool:
    """Return whether results here have the files of a spec as they get them now; then a restart writes none of it."""
    if not kept_file(out, spec).exists():
        return False
    return all(_has(out.joinpath(*parts), content) for parts, content in KeptSpec.of(spec).files.items())


def _has(path: Path, content: bytes) -> bool:
    try:
        return read_regular(path, len(content)) == content
    except (OSError, ValueError):  # whoever reads it says what is wrong
        return False


def kept_specs(out: str) -> dict[CollectionKey, CollectionSpec]:
    """Read the specs of results, a path or a URL; none if it has none; SpecError or EndpointError if it cannot."""
    if not is_remote(out):
        return dict(KeptSpecs(Path(out)))
    with TemporaryDirectory() as made:
        copy_below(out, "specs/*/*", Path(made))
        return kept_specs(made)


def kept_file(out: Path, spec: CollectionSpec) -> Path:
    """Return the path at which a results directory keeps a spec."""
    return out / "specs" / name_of(spec) / "spec.yaml"


def _background(labels: Sequence[str], weights: Floats) -> bytes:
    file = io.StringIO(newline="")
    rows = csv.writer(file)
    rows.writerow(["value", "weight"])
    rows.writerows((label, repr(float(weight))) for label, weight in zip(labels, weights, strict=True) if weight)
    return file.getvalue().encode()
