"""The specs that a results directory keeps: each in a folder of its own, without files elsewhere that it needs."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from uldp.pipelines.jobs.identity import name_of
from uldp.pipelines.results.specs import kept_text, load_kept
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.zones import write_zones
from uldp.transforms.io.durable_files import make_folder, write_file
from uldp.transforms.io.folders import below, is_remote
from uldp.transforms.io.remote import fetched, matching


def keep_specs(out: str, specs: Sequence[CollectionSpec]) -> None:
    """Write specs, and the files that they name, into a local or remote results directory."""
    for parts, content in spec_files(specs).items():
        write_file(below(out, *parts), content)


def kept_specs(out: str) -> dict[CollectionKey, CollectionSpec]:
    """Read the specs of a results directory, here or behind a URL; none if it has none.

    Raises:
        SpecError: if one is invalid.
        EndpointError: if they cannot be fetched.
    """
    if not is_remote(out):
        specs = [load_kept(path) for path in sorted(Path(out).glob("specs/*/spec.yaml"))]
        return {spec.key: spec for spec in specs}
    with TemporaryDirectory() as made:
        fetch(out, "specs/*/*", Path(made))
        return kept_specs(made)


def fetch(out: str, pattern: str, folder: Path) -> None:
    """Copy the files of a URL that match a pattern into a folder, at the same place below it.

    Raises:
        EndpointError: if they cannot be fetched.
    """
    for found in matching(below(out, *pattern.split("/"))):
        path = folder.joinpath(*found.path.split("/")[-pattern.count("/") - 1 :])
        path.parent.mkdir(parents=True, exist_ok=True)
        with fetched(found.path) as file:
            path.write_bytes(file.read())


def spec_files(specs: Sequence[CollectionSpec]) -> dict[tuple[str, ...], bytes]:
    """Return the content of the files with which a results directory keeps specs, by the parts of their path."""
    with TemporaryDirectory() as made:
        for spec in specs:
            _keep(kept_folder(Path(made), spec), spec)
        paths = sorted(path for path in Path(made).rglob("*") if path.is_file())
        return {path.relative_to(made).parts: path.read_bytes() for path in paths}


def kept_folder(out: Path, spec: CollectionSpec) -> Path:
    """Return the folder in which a results directory keeps a spec."""
    return out / "specs" / name_of(spec)


def _keep(folder: Path, spec: CollectionSpec) -> None:
    """Write a spec that needs no outside files.

    Labels and candidates move into it, backgrounds and zones into files beside it. Numbers take the place of auto,
    because another release may choose others.
    """
    make_folder(folder.absolute())
    data = spec.model_dump(mode="json", exclude_none=True)
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
                _write_background(folder / tag["background"], variable.labels, weights / 2)
                if not math.isnan(strength):
                    tag["strength"] = float(strength)
        for tag, zones in zip(tags, variable.zones, strict=True):
            if zones is not None:
                tag["zones"] = f"{name}.{tag['name']}.zones.csv" if name else f"{tag['name']}.zones.csv"
                write_zones(folder / tag["zones"], zones, variable.labels)
    (folder / "spec.yaml").write_text(kept_text(data), encoding="utf-8")


def _write_background(path: Path, labels: Sequence[str], weights: Floats) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["value", "weight"])
        rows.writerows((label, repr(float(weight))) for label, weight in zip(labels, weights, strict=True) if weight)
