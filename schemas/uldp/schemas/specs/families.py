"""Where the model of each mechanism is, by its name in specs. A model is imported when a spec first names it.

The project's own are in ``uldp.mechanisms.families``, a folder for each family. Another package names its models as
entry points of the group ``uldp.families``, each under the name of the mechanism.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint

from uldp.schemas.extras import with_packages

#: The group of entry points.
GROUP = "uldp.families"

_OWN = {
    "rr": "randomized_response.spec:RandomizedResponseSpec",
    "warner": "randomized_response.spec:WarnerSpec",
    "mangat": "randomized_response.spec:MangatSpec",
    "urr": "randomized_response.spec:UtilityOptimizedResponseSpec",
    "rappor": "unary_encoding.spec:RapporSpec",
    "sue": "unary_encoding.spec:SymmetricUnaryEncodingSpec",
    "oue": "unary_encoding.spec:OptimizedUnaryEncodingSpec",
    "urap": "unary_encoding.spec:UrapSpec",
    "uoue": "unary_encoding.spec:UoueSpec",
    "uhr": "subset_selection.spec:UtilityOptimizedHadamardSpec",
    "uss": "subset_selection.spec:UtilityOptimizedSubsetSpec",
    "ubd": "subset_selection.spec:BlockDesignSpec",
    "ss": "subset_selection.spec:SubsetSelectionSpec",
    "olh": "local_hashing.spec:LocalHashingSpec",
    "hrr": "folds.spec:HadamardResponseSpec",
    "blh": "folds.spec:BinaryLocalHashingSpec",
    "linear-olh": "folds.spec:LinearHashingSpec",
    "pgr": "folds.spec:ProjectiveGeometrySpec",
    "the": "unary_encoding.spec:ThresholdingSpec",
    "she": "summation.spec:SummationSpec",
    "set-ss": "sets.spec:SetSelectionSpec",
    "set-olh": "sets.spec:SetHashingSpec",
    "duchi": "duchi.spec:DuchiSpec",
    "block": "block.spec:BlockSpec",
    "hybrid": "duchi.spec:HybridSpec",
    "geometric": "geometric.spec:GeometricSpec",
    "bit-flip": "bit_flip.spec:BitFlipSpec",
    "bloom": "local_hashing.spec:BloomSpec",
    "cohort-olh": "local_hashing.spec:CohortHashingSpec",
    "prefixes": "prefixes.spec:PrefixesSpec",
    "idue": "input_discriminative.spec:InputDiscriminativeSpec",
    "metric": "metric.spec:MetricSpec",
    "tree": "tree.spec:TreeSpec",
    "levels": "levels.spec:LevelsSpec",
    "pairs": "paired_comparison.spec:PairsSpec",
    "sample-one": "records.spec:SampleOneSpec",
    "marginals": "records.spec:MarginalsSpec",
    "identity": "randomized_response.spec:IdentitySpec",
}


@cache
def registered() -> Mapping[str, EntryPoint]:
    """Return where each model is, by the name of its mechanism; see ``with_packages``."""
    return with_packages(GROUP, {name: f"uldp.mechanisms.families.{model}" for name, model in _OWN.items()})


def mechanism_names() -> tuple[str, ...]:
    """Return the names of all mechanisms."""
    return tuple(registered())
