"""Parameters with which no mechanism is built: a spec refuses them with a remedy, and the classes refuse them too."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.duchi.randomizer import Duchi
from uldp.mechanisms.families.duchi.spec import MeanDecoder
from uldp.mechanisms.families.folds.randomizer import HadamardResponse, LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.families.local_hashing.bloom import BloomFilter
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.summation.randomizer import Summation
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding, thresholding
from uldp.mechanisms.kernels.projective_space import ProjectiveSpace
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.projective_response import ProjectiveResponse

ALL, NONE = np.ones(5, dtype=np.bool_), np.zeros(5, dtype=np.bool_)
PLANE = ProjectiveSpace(3, 2)

WITH_EPSILON: Mapping[str, Callable[[float], object]] = {
    "rr": lambda epsilon: RandomizedResponse(ALL, epsilon),
    "oue": lambda epsilon: UnaryEncoding(ALL, epsilon, 0.5),
    "olh": lambda epsilon: LocalHashing(5, epsilon, 4),
    "ss": lambda epsilon: SubsetSelection(5, epsilon),
    "hrr": lambda epsilon: HadamardResponse(5, epsilon),
    "linear-olh": lambda epsilon: LinearHashing(5, epsilon),
    "pgr": lambda epsilon: ProjectiveGeometryResponse(5, epsilon),
    "she": lambda epsilon: Summation(5, epsilon),
    "the": lambda epsilon: thresholding(ALL, epsilon, 0.7),
    "bit-flip": lambda epsilon: FlippedBits(3, epsilon),
    "metric": lambda epsilon: MetricMechanism(4, epsilon),
    "duchi": Duchi,
    "block": lambda epsilon: Block(epsilon, 4),
    "zones": lambda epsilon: ProjectiveResponse(2, epsilon),
    "mean": lambda epsilon: MeanDecoder(0.0, 1.0, epsilon),
}


@pytest.mark.parametrize("name", WITH_EPSILON)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_epsilon_must_be_positive(name: str, epsilon: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon|budget"):
        WITH_EPSILON[name](epsilon)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: RandomizedResponse(NONE, 1.0), "no symbol is sensitive"),
        (lambda: UnaryEncoding(NONE, 1.0, 0.5), "no symbol is sensitive"),
        (lambda: UnaryEncoding(ALL, 1.0, 1.0), "theta"),
        (lambda: thresholding(ALL, 1.0, 1.0), "theta"),
        (lambda: LocalHashing(0, 1.0, 4), "size 0"),
        (lambda: LocalHashing(5, 1.0, 1), "2 to 65536 buckets, got 1"),
        (lambda: SubsetSelection(1, 1.0), "two symbols"),
        (lambda: Summation(0, 1.0), "two symbols"),
        (lambda: HadamardResponse(0, 1.0), "one symbol"),
        (lambda: LinearHashing(14, 1.0, PLANE), "no room"),
        (lambda: ProjectiveGeometryResponse(14, 1.0, PLANE), "no room"),
        (lambda: FlippedBits(0, 1.0), "one symbol"),
        (lambda: MetricMechanism(1, 1.0), "two symbols"),
        (lambda: MetricMechanism(4, 1.0, 3), "do not divide"),
        (lambda: Block(1.0, 0), "1 bin or more"),
        (lambda: BloomFilter(1.0, 12, 1, 1), "a multiple of 8 bits"),
        (lambda: BloomFilter(1.0, 8, 5, 1), "half as many hashes"),
        (lambda: BloomFilter(1.0, 8, 1, 0), "1 to 65,536 cohorts"),
        (lambda: ProjectiveResponse(1, 1.0), "two zones and a budget"),
        (lambda: ProjectiveResponse(4, 1.5, 1.0), "above that of the report, 1"),
        (lambda: NestedResponse(ALL, 1.0, [None]), "a bot with zones"),
        (lambda: MeanDecoder(1.0, 0.0, 1.0), "range"),
    ],
)
def test_other_parameters(build: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        build()
