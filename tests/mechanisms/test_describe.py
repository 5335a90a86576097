"""What a payload says, in a line."""

import numpy as np
import pytest
from numpy.random import default_rng

from tests.build import spec
from tests.mechanisms.protocols import alternatives, examples
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.folds.randomizer import HadamardResponse, LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.families.local_hashing.bloom import BloomFilter
from uldp.mechanisms.families.local_hashing.cohorts import CohortHashing
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import BlockResponse
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.kernels.block_designs import HadamardDesign
from uldp.mechanisms.kernels.projective_space import ProjectiveSpace
from uldp.mechanisms.protocol.decoder import two_digits
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.projective_response import ProjectiveResponse

EXAMPLES = examples()
THREE, MANY = np.ones(3, dtype=np.bool_), np.ones(1000, dtype=np.bool_)
RR = RandomizedResponse(THREE, 1.0)
OLH = LocalHashing(5, 1.0, 4)
RECORD = {"version": {"size": 3}, "os": {"size": 2}, "crash": {"size": 2}}
VIEWS = build_protocol(
    spec(domain={"record": RECORD}, mechanism={"name": "marginals", "epsilon": 2.0, "views": "pairs"})
).mechanism
NESTED = NestedResponse(THREE, 1.0, [ProjectiveResponse(4, 1.0)])


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_payload_is_a_symbol_where_each_symbol_is_a_payload_that_supports_one(name: str) -> None:
    bare = EXAMPLES[name].protocol.mechanism.bare
    names_one = isinstance(bare, PureMechanism) and bare.channel.one_symbol and bare.form.symbols == bare.channel.size
    assert bare.reports_symbols == names_one


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_payload_is_one_line(name: str) -> None:
    mechanism, rng = EXAMPLES[name].protocol.mechanism, default_rng(3)
    for payload in mechanism.perturb(rng.choice(alternatives(mechanism)[0], 20), rng):
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
        # Row 5 of the matrix has a -1 where a symbol shares one of the bits 1 and 4 with it, and not both.
        (HadamardResponse(7, 1.0), 11, "row 5 of 8, bit 1, supports 4 of 7 symbols: 1, 3, 4, 6"),
        # Symbol 3a + b has the hash a + 2b modulo 3.
        (
            LinearHashing(8, 1.0, ProjectiveSpace(3, 2)),
            3 * 3 + 1,
            "point 3 of 4 (1 2 modulo 3), bucket 1 of 3, supports 3 of 8 symbols: 2, 3, 7",
        ),
        # The points are 01, 10, 11 and 12; of these, 11 is on the line of 12 alone.
        (
            ProjectiveGeometryResponse(4, 1.0, ProjectiveSpace(3, 2)),
            2,
            "point 2 of 4 (1 1 modulo 3), supports 1 of 4 symbols: 3",
        ),
        # Column 3 has a 1 in the rows 3, 4 and 7; the first three sensitive symbols are the rows 1 to 3.
        (
            BlockResponse(np.array([True, False, True, True]), 1.0, HadamardDesign(4)),
            3,
            "block 3 of 8, supports 1 of 3 sensitive symbols: 3",
        ),
        (BlockResponse(np.arange(6) != 1, 1.0, HadamardDesign(5)), 8, "symbol 1 of 6, which is not sensitive"),
        (CohortHashing(1.0, 4, 10), 4 * 7 + 3, "cohort 7 of 10, bucket 3 of 4"),
        (BloomFilter(1.0, 16, 2, 300), b"\x02\x01\x80\x01", "cohort 258 of 300, 2 of 16 bits are 1: 0, 15"),
        (
            Strata([FlippedBits(3, 1.0), FlippedBits(2, 1.0)], [0.5, 0.5], "design"),
            b"\x01\0\x40",
            "design 1 of 2: 1 of 2 bits are 1: 1",
        ),
        (NESTED, 2, "symbol 2 of 7"),
        (NESTED, 5, "symbol 5 of 7: point 2 of 4 of tag 0"),
        (Strata([RR, RR], [0.5, 0.5]), 4, "attribute 1 of 2: symbol 1 of 3"),
        (Strata([RR, RR], [0.5, 0.5], names=["app", "os"]), 4, "attribute 1 of 2, os: symbol 1 of 3"),
        (VIEWS, 13, "view 2 of 3, os x crash: symbol 1 of 4"),
        (Strata([RR, OLH], [0.5, 0.5]), b"\0\0\x02\0\0\0\0\0", "attribute 0 of 2: symbol 2 of 3"),
        (Strata([RR, OLH], [0.5, 0.5]), b"\x01\0\x07\0\0\0\x02\0", "attribute 1 of 2: seed 7, bucket 2 of 4"),
    ],
)
def test_the_line_of_a_mechanism(mechanism: Mechanism, payload: int | bytes, line: str) -> None:
    assert mechanism.describe(payload) == line


@pytest.mark.parametrize(
    ("number", "rounded"), [(0.2, 1), (7, 7), (7.1, 8), (99.5, 100), (10_401, 11_000), (11_000, 11_000)]
)
def test_a_number_of_users_is_rounded_up(number: float, rounded: int) -> None:
    assert two_digits(number) == rounded
