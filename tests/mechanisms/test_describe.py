"""What a payload says, in a line."""

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.protocols import examples
from uldp.mechanisms.local_hashing import LocalHashing
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.nested_response import NestedResponse
from uldp.mechanisms.projective_response import ProjectiveResponse
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.mechanisms.strata import Strata
from uldp.mechanisms.unary_encoding import UnaryEncoding

EXAMPLES = examples()
THREE, MANY = np.ones(3, dtype=np.bool_), np.ones(1000, dtype=np.bool_)
RR = RandomizedResponse(THREE, 1.0)
OLH = LocalHashing(5, 1.0, 4)
NESTED = NestedResponse(THREE, 1.0, [ProjectiveResponse(4, 1.0)])


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_payload_is_one_line(name: str) -> None:
    mechanism, rng = EXAMPLES[name].protocol.mechanism, default_rng(3)
    for payload in mechanism.perturb(rng.integers(0, mechanism.size, 20), rng):
        line = mechanism.describe(payload.tobytes() if isinstance(payload, np.ndarray) else int(payload))
        assert line.isprintable()
        assert 0 < len(line) < 200


@pytest.mark.parametrize(
    ("mechanism", "payload", "line"),
    [
        (RR, 2, "symbol 2 of 3"),
        (UnaryEncoding(THREE, 1.0, 0.5), b"\xa0", "2 of 3 bits are 1: 0, 2"),
        (UnaryEncoding(THREE, 1.0, 0.5), b"\0", "0 of 3 bits are 1"),
        (
            UnaryEncoding(MANY, 1.0, 0.5),
            b"\xff" * 125,
            f"1,000 of 1,000 bits are 1: {', '.join(map(str, range(20)))}, ...",
        ),
        (OLH, b"\x07\0\0\0\x02\0", "seed 7, bucket 2 of 4"),
        (NESTED, 2, "symbol 2 of 7"),
        (NESTED, 5, "symbol 5 of 7: point 2 of 4 of tag 0"),
        (Strata([RR, RR], [0.5, 0.5]), 4, "attribute 1 of 2: symbol 1 of 3"),
        (Strata([RR, OLH], [0.5, 0.5]), b"\0\0\x02\0\0\0\0\0", "attribute 0 of 2: symbol 2 of 3"),
        (Strata([RR, OLH], [0.5, 0.5]), b"\x01\0\x07\0\0\0\x02\0", "attribute 1 of 2: seed 7, bucket 2 of 4"),
    ],
)
def test_the_line_of_a_mechanism(mechanism: Mechanism, payload: int | bytes, line: str) -> None:
    assert mechanism.describe(payload) == line
