"""The specs that results were made under: ``OUT/specs/<collection>-v<version>/spec.yaml``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from uldp.pipelines.results.files import ResultsError, finished
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.kinds import is_listed
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.table import TableName

Specs = Mapping[CollectionKey, CollectionSpec]

#: A file that loses its end may still be a spec, with the defaults of the keys that it has lost. So one that a job has
#: written says how it ends. A spec that somebody has copied there begins otherwise, and is read as any other.
_HEAD = "# Kept by the job that wrote these results; the last line of this file is three dots.\n"
_END = "...\n"
#: libyaml, which is in each wheel of PyYAML, prints five times as fast as its Python: a job may have a thousand specs.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def kept_text(data: Mapping[str, Any]) -> str:
    """Write a spec, as ``keep_specs`` does beside results."""
    return _HEAD + yaml.dump(data, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, explicit_end=True)


def load_kept(path: Path) -> CollectionSpec:
    """Read a spec beside results; SpecError if it is invalid, or lacks the end that its job wrote."""
    spec = CollectionSpec.load(path)
    text = path.read_text(encoding="utf-8")
    if text.startswith(_HEAD) and not text.endswith(_END):
        raise SpecError(f"{path}: its end is missing; restore it from a backup, or copy the spec of the job there")
    return spec


class KeptSpecs(Mapping[CollectionKey, CollectionSpec]):
    """A directory's specs by collection and version, each read, with SpecError or ResultsError, at its first use."""

    def __init__(self, out: Path) -> None:
        self._paths: dict[CollectionKey, Path] = {}
        self._read: dict[CollectionKey, CollectionSpec] = {}
        for path in finished(out, "specs/*/spec.yaml"):
            collection, _, version = path.parent.name.rpartition("-v")
            if not version.isdecimal():
                raise _misplaced(path)
            self._paths[collection, int(version)] = path

    def __getitem__(self, key: CollectionKey) -> CollectionSpec:
        if key not in self._read:
            spec = load_kept(self._paths[key])
            if spec.key != key:
                raise _misplaced(self._paths[key])
            self._read[key] = spec
        return self._read[key]

    def __iter__(self) -> Iterator[CollectionKey]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def _misplaced(path: Path) -> ResultsError:
    return ResultsError(f"{plain(str(path.parent))}: a job gives the folder of this spec another name; remove it")


def missing_spec(name: str) -> ResultsError:
    """Return the error about results without the spec that they were made under; ``name`` is that of its folder."""
    return ResultsError(f"specs/{name}/spec.yaml is missing beside the results of {name}; copy the spec there")


def spec_of(estimate: Estimate, specs: Specs) -> CollectionSpec:
    """Find the spec that an estimate was made under; ResultsError if there is none with its device half and domain."""
    name = f"{estimate.collection}-v{estimate.version}"
    spec = specs.get((estimate.collection, estimate.version))
    if spec is None:
        raise missing_spec(name)
    share = estimate.table(TableName.SHARE)
    fits = share is None or not is_listed(spec.domain.kind) or share.shape == (spec.size,)
    if estimate.device_digest != spec.device_digest or not fits:
        raise ResultsError(
            f"specs/{name}/spec.yaml is not the spec of the job that made the estimates of {name}: "
            "domain, sensitive values, tags, mechanism or epsilon differ; restore the spec of that job"
        )
    return spec
