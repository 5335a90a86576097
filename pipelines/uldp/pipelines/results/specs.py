"""The specs that results were made under: ``OUT/specs/<collection>-v<version>/spec.yaml``."""

from collections.abc import Mapping

from uldp.pipelines.results.files import ResultsError
from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.kinds import is_listed
from uldp.schemas.table import TableName

Specs = Mapping[CollectionKey, CollectionSpec]


def missing_spec(name: str) -> ResultsError:
    """Return the error about results without the spec that they were made under; ``name`` is that of its folder."""
    return ResultsError(f"specs/{name}/spec.yaml is missing beside the estimates of {name}; copy the spec there")


def spec_of(estimate: Estimate, specs: Specs) -> CollectionSpec:
    """Find the spec that an estimate was made under.

    Raises:
        ResultsError: if ``specs`` has no spec of the estimate's collection and version, or if that spec has another
            device half, or a domain that the estimate's tables do not fit.
    """
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
