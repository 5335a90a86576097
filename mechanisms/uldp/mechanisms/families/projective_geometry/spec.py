"""Projective geometry response in specs."""

from typing import ClassVar, Literal

from uldp.mechanisms.assembly import of_folds
from uldp.mechanisms.families.projective_geometry.randomizer import ProjectiveGeometryResponse, best_point_space
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable


class ProjectiveGeometrySpec(PrivateSpec):
    """Projective geometry response: a report is a point, and supports the values of whose hyperplanes it is one."""

    title = "projective geometry response (PGR)"
    literature: ClassVar = {"pgr": "HR"}
    largest_size = 1 << 20
    large_domains = ("decodes by a transform of at most 2^23 numbers", "hrr")

    name: Literal["pgr"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_folds(
            variable,
            self,
            lambda size, epsilon: ProjectiveGeometryResponse(size, epsilon, best_point_space(size, self.epsilon)),
        )
