"""The populations of the ULDP paper, as far as public data gives them.

- Manhattan: the check-ins that the project ships, 25 x 25 cells, |X_S| = 15. The paper has thirteen times as many, and
  other sensitive cells; ``examples/manhattan/README.md`` says how ours were made.
- Census: age x income x marital status x sex of the US Census 1990, |X| = 400, |X_S| = 76, with up to five attributes
  of military service, |X| = 12,800, |X_S| = 2,432. The joint distribution is that of a model, a tree of pairs of
  attributes (Chow and Liu); single attributes are exact. Only the one of four attributes is shipped. That of nine is
  read from ``../shared/data``, if it is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.specs.collection import CollectionSpec

EXAMPLES = Path(__file__).parents[2] / "examples"
CENSUS_OF_NINE = Path(__file__).parents[3] / "shared" / "data" / "census12800_chowliu.npy"
#: The numbers of categories of the attributes of the census, in the order in which the paper adds them.
CATEGORIES = (8, 5, 5, 2, 2, 2, 2, 2, 2)


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution of values, and which of them are sensitive.

    Attributes:
        name: Its name in tables.
        p: Shape (|X|,): the distribution from which the values of users are drawn, each for itself. The paper draws
            half of a finite population, so its error without privacy is smaller by a factor of about sqrt(2).
        sensitive: Shape (|X|,): X_S.
        users: n of the paper.
    """

    name: str
    p: Floats
    sensitive: Mask
    users: int


@cache
def manhattan() -> Population:
    """Return the check-ins of Manhattan, |X| = 625."""
    return _shipped("manhattan", 179_527)


@cache
def census(attributes: int = 4) -> Population:
    """Return the census with four to nine attributes, |X| = 400 to 12,800.

    Raises:
        FileNotFoundError: if there are more than four, and their model is not at hand.
    """
    four = _shipped("census", 1_229_143)
    if attributes == 4:
        return four
    joint = np.load(CENSUS_OF_NINE).reshape(CATEGORIES)
    p = joint.sum(axis=tuple(range(attributes, len(CATEGORIES)))).ravel()
    return Population(f"census of {attributes}", p / p.sum(), np.repeat(four.sensitive, len(p) // 400), 240_000)


def _shipped(name: str, users: int) -> Population:
    spec = CollectionSpec.load(EXAMPLES / name / "spec.yaml")
    truth = Truth.load(EXAMPLES / name / "truth.csv", spec)
    return Population(name, truth.distribution(), spec.sensitive_mask, users)


def protocol(population: Population, mechanism: Mapping[str, Any], epsilon: float) -> LdpProtocol:
    """Build a mechanism as a spec does: over the sensitive values of a population, or over all values.

    Args:
        population: The values.
        mechanism: The keys of the mechanism in a spec, without its epsilon.
        epsilon: The budget of a report; ``identity`` has none.
    """
    name = mechanism["name"]
    keys: dict[str, Any] = {
        "collection": "paper",
        "version": 1,
        "domain": {"size": len(population.p)},
        "mechanism": {**mechanism} if name == "identity" else {**mechanism, "epsilon": epsilon},
        "window": {"size": "1d"},
        "sensitive": np.flatnonzero(population.sensitive).tolist() if name.startswith("u") else "all",
    }
    return build_protocol(CollectionSpec.parse(keys, base=Path()))
