"""Where the model of each mechanism is, by its name in specs. A model is imported when a spec first names it.

The project's own are in ``uldp.mechanisms.families``, a folder for each family. Another package names its models as
entry points of the group ``uldp.families``, each under the name of the mechanism.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

#: The group of entry points.
GROUP = "uldp.families"

_OWN = {
    "identity": "randomized_response.spec:IdentitySpec",
    "rr": "randomized_response.spec:RandomizedResponseSpec",
    "warner": "randomized_response.spec:WarnerSpec",
    "mangat": "randomized_response.spec:MangatSpec",
    "urr": "randomized_response.spec:UtilityOptimizedResponseSpec",
    "rappor": "unary_encoding.spec:RapporSpec",
    "sue": "unary_encoding.spec:SymmetricUnaryEncodingSpec",
    "oue": "unary_encoding.spec:OptimizedUnaryEncodingSpec",
    "urap": "unary_encoding.spec:UrapSpec",
    "uoue": "unary_encoding.spec:UoueSpec",
    "uhr": "block_designs.spec:UtilityOptimizedHadamardSpec",
    "uss": "subset_selection.spec:UtilityOptimizedSubsetSpec",
    "ubd": "block_designs.spec:BlockDesignSpec",
    "ss": "subset_selection.spec:SubsetSelectionSpec",
    "olh": "local_hashing.spec:LocalHashingSpec",
    "hrr": "hadamard_response.spec:HadamardResponseSpec",
    "blh": "hadamard_response.spec:BinaryLocalHashingSpec",
    "linear-olh": "linear_hashing.spec:LinearHashingSpec",
    "pgr": "projective_geometry.spec:ProjectiveGeometrySpec",
    "the": "thresholding.spec:ThresholdingSpec",
    "she": "summation.spec:SummationSpec",
    "duchi": "duchi.spec:DuchiSpec",
    "block": "block.spec:BlockSpec",
    "bit-flip": "bit_flip.spec:BitFlipSpec",
    "bloom": "bloom.spec:BloomSpec",
    "cohort-olh": "cohort_hashing.spec:CohortHashingSpec",
    "idue": "input_discriminative.spec:InputDiscriminativeSpec",
    "metric": "metric.spec:MetricSpec",
    "levels": "levels.spec:LevelsSpec",
    "sample-one": "sample_one.spec:SampleOneSpec",
}


@cache
def registered() -> Mapping[str, EntryPoint]:
    """Return where each model is: first the project's own, then those of other packages, in the order of their names.

    Raises:
        ValueError: if a package names a mechanism as another one does.
    """
    found = {name: EntryPoint(name, f"uldp.mechanisms.families.{model}", GROUP) for name, model in _OWN.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if point.name in found:
            raise ValueError(
                f"two models have the name {point.name} of a mechanism, {found[point.name].value} and {point.value};"
                " uninstall the package of one"
            )
        found[point.name] = point
    return found


def mechanism_names() -> tuple[str, ...]:
    """Return the names of all mechanisms."""
    return tuple(registered())
