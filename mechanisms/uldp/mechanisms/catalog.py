"""Build the protocol of a collection spec."""

from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import MOST_CELLS, MOST_REPORTS, Mechanism
from uldp.mechanisms.slices.public_slices import sliced
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.variable import Variable


def build_protocol(spec: CollectionSpec) -> LdpProtocol:
    """Build the encoding, mechanism and decoder of a collection.

    ValueError if a mechanism is not for this domain, its epsilon is too small, or the statistic has too many cells, or
    cells that could overflow.
    """
    try:
        parts = {name: build_variable(variable) for name, variable in spec.variables.items()}
        joined = parts[""] if "" in parts else spec.mechanism.joined(spec.variables, parts, spec.given)
        protocol = _checked(joined, spec.mechanism.name)
        if spec.slices is not None:
            protocol = sliced(protocol, spec.slices, len(spec.variables))
    except ValueError as error:
        raise RequestError(f"collection {spec.collection} version {spec.version}: {error}") from error
    _check_size(spec, protocol.mechanism)
    return protocol


def build_variable(variable: Variable) -> LdpProtocol:
    """Build the encoding, mechanism and decoder of one variable."""
    return _checked(variable.parameters.protocol(variable), variable.mechanism.name)


def _checked(protocol: object, name: str) -> LdpProtocol:
    if not isinstance(protocol, LdpProtocol):
        raise TypeError(f"the mechanism {name} builds a {type(protocol).__name__}, not an LdpProtocol")
    return protocol


def _check_size(spec: CollectionSpec, mechanism: Mechanism) -> None:
    which = f"collection {spec.collection} version {spec.version}"
    if mechanism.statistic_size > MOST_CELLS:
        remedy = "fewer attributes, or attributes with fewer values" if spec.domain.record else "fewer values"
        remedy += ", or fewer slices" if spec.by else ""
        raise RequestError(
            f"{which}: {spec.mechanism.name} has {mechanism.statistic_size:,} cells, but a statistic holds at most"
            f" {MOST_CELLS:,}; use a domain with {remedy}"
        )
    if mechanism.largest_step * MOST_REPORTS >= 1 << 63:
        raise RequestError(
            f"{which}: a report of {spec.mechanism.name} moves a cell by up to {mechanism.largest_step:,}, so"
            f" {MOST_REPORTS:,} reports could exceed 64 bits; choose another mechanism"
        )
