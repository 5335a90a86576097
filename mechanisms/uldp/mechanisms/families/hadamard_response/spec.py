"""Hadamard response in specs."""

from typing import ClassVar, Literal

from uldp.mechanisms.assembly import of_folds
from uldp.mechanisms.families.hadamard_response.randomizer import HadamardResponse
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class _Hadamard(PrivateSpec):
    largest_size = 1 << 23
    large_domains = ("has two cells or more for each value", "oue")

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_folds(variable, self, HadamardResponse)


class HadamardResponseSpec(_Hadamard):
    """Hadamard randomized response."""

    title = "Hadamard randomized response (HRR)"
    literature: ClassVar = {"hrr": "HCMS S-Hist"}

    name: Literal["hrr"]


class BinaryLocalHashingSpec(_Hadamard):
    """Binary local hashing with linear functions, which is Hadamard randomized response."""

    title = "binary local hashing (BLH)"
    not_ranked = "the same as hrr"

    name: Literal["blh"]
