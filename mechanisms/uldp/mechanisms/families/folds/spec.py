"""Mechanisms with a fold in specs, for large domains."""

from typing import ClassVar, Literal

from uldp.mechanisms.assembly import of_folds
from uldp.mechanisms.families.folds.randomizer import (
    HadamardResponse,
    LinearHashing,
    ProjectiveGeometryResponse,
    best_linear_space,
    best_point_space,
)
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


class _OverAField(PrivateSpec):
    largest_size = 1 << 20
    large_domains = ("decodes by a transform of at most 2^23 numbers", "hrr")


class LinearHashingSpec(_OverAField):
    """Local hashing with linear functions over a finite field."""

    title = "optimized local hashing with linear functions"

    name: Literal["linear-olh"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        space = best_linear_space(variable.size, self.epsilon)
        return of_folds(variable, self, lambda size, epsilon: LinearHashing(size, epsilon, space))


class ProjectiveGeometrySpec(_OverAField):
    """Projective geometry response: a report is a point, and supports the values of whose hyperplanes it is one."""

    title = "projective geometry response (PGR)"
    literature: ClassVar = {"pgr": "HR"}

    name: Literal["pgr"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        space = best_point_space(variable.size, self.epsilon)
        return of_folds(variable, self, lambda size, epsilon: ProjectiveGeometryResponse(size, epsilon, space))
