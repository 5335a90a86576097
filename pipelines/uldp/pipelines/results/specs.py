"""The specs that results were made under: ``OUT/specs/<collection>-v<version>/spec.yaml``."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from uldp.pipelines.results.files import Damaged, ResultsError, check_directory, finished, refuse
from uldp.pipelines.results.read import ESTIMATES, estimator_of
from uldp.pipelines.results.selection import Selection, require
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.kinds import is_listed
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.table import TableName
from uldp.transforms.io.folders import Kind, kind_of, mismatch

Specs = Mapping[CollectionKey, CollectionSpec]


def read_specs(out: Path) -> dict[CollectionKey, CollectionSpec]:
    """Load the specs that the results were made under, by (collection, version).

    Raises:
        ResultsError: if ``out`` is not a directory, or holds no spec.
        SpecError: if a spec in ``out`` is invalid.
    """
    check_directory(out)
    specs = [CollectionSpec.load(path) for path in sorted(out.glob("specs/*/spec.yaml"))]
    if not specs:
        if kind_of(out) is not Kind.RESULTS:
            raise ResultsError(mismatch(out, Kind.RESULTS))
        raise ResultsError(f"{plain(str(out / 'specs'))}: holds no folder with a spec.yaml; restore the specs")
    return {spec.key: spec for spec in specs}


def missing_spec(name: str) -> ResultsError:
    """Return the error about results without the spec that they were made under; ``name`` is that of its folder."""
    return ResultsError(f"specs/{name}/spec.yaml is missing beside the estimates of {name}; copy the spec there")


def spec_of(estimate: Estimate, specs: Specs) -> CollectionSpec:
    """Find the spec that an estimate was made under.

    Raises:
        ResultsError: if ``specs`` has no spec of the estimate's collection and version, or if that spec has another
            channel, or a domain that the estimate's tables do not fit.
    """
    name = f"{estimate.collection}-v{estimate.version}"
    spec = specs.get((estimate.collection, estimate.version))
    if spec is None:
        raise missing_spec(name)
    share = estimate.table(TableName.SHARE)
    fits = share is None or not is_listed(spec.domain.kind) or share.shape == (spec.size,)
    if estimate.channel != spec.device_digest or not fits:
        raise ResultsError(
            f"specs/{name}/spec.yaml is not the spec of the job that made the estimates of {name}: "
            "domain, sensitive values, tags, mechanism or epsilon differ; restore the spec of that job"
        )
    return spec


def with_specs(
    estimates: Iterable[Estimate], specs: Specs, damaged: Damaged = refuse
) -> Iterator[tuple[Estimate, CollectionSpec]]:
    """Yield each estimate with the spec it was made under; pass each distinct error of ``spec_of`` to ``damaged``."""
    said = set()
    for estimate in estimates:
        try:
            spec = spec_of(estimate, specs)
        except ResultsError as error:
            if str(error) not in said:
                damaged(error)
            said.add(str(error))
        else:
            yield estimate, spec


def check_selection(out: Path, specs: Specs, selection: Selection) -> None:
    """Check that the results have the collection and the estimator that a selection names.

    Raises:
        RequestError: if no spec has the collection, or if neither its specs nor its files name the estimator.
    """
    require("collection", selection.collection, {collection for collection, _ in specs})
    mine = [spec for spec in specs.values() if selection.collection in (None, spec.collection)]
    estimators: set[str] = {name for spec in mine for name in spec.estimators}
    for spec in mine:
        files = finished(out, f"{ESTIMATES.folder}/{spec.collection}-v{spec.version}/*/*.avro")
        estimators |= {name for name in map(estimator_of, files) if name is not None}
    require("estimator", selection.estimator, estimators)
