"""Build the protocol of a collection spec."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from uldp.mechanisms.decoders.design_decoder import DesignDecoder
from uldp.mechanisms.decoders.folded_decoder import FoldedDecoder
from uldp.mechanisms.decoders.matrix_decoder import MatrixDecoder
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.decoders.summation_decoder import SummationDecoder
from uldp.mechanisms.kernels.block_designs import CyclicDesign, HadamardDesign
from uldp.mechanisms.mechanism import MOST_CELLS, MOST_REPORTS, Mechanism, PureMechanism
from uldp.mechanisms.numbers.block import Block
from uldp.mechanisms.numbers.block_decoder import BlockDecoder
from uldp.mechanisms.numbers.duchi import GRID, Duchi, MeanDecoder
from uldp.mechanisms.numbers.number import NumberEncoding
from uldp.mechanisms.pooling.levels import LevelEncoding, LevelsDecoder
from uldp.mechanisms.protocol import LdpProtocol
from uldp.mechanisms.randomizers.bit_flip import DesignEncoding, FlippedBits, design_widths
from uldp.mechanisms.randomizers.block_response import BlockResponse
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.mechanisms.randomizers.hadamard_response import HadamardResponse
from uldp.mechanisms.randomizers.input_discriminative import InputDiscriminativeEncoding
from uldp.mechanisms.randomizers.linear_hashing import LinearHashing, best_linear_space
from uldp.mechanisms.randomizers.local_hashing import LocalHashing
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.randomizers.metric import MetricMechanism
from uldp.mechanisms.randomizers.projective_geometry import ProjectiveGeometryResponse, best_point_space
from uldp.mechanisms.randomizers.randomized_response import RandomizedResponse
from uldp.mechanisms.randomizers.strata import MemoizedStrata, RecordEncoding, Strata
from uldp.mechanisms.randomizers.subset_selection import SubsetSelection, best_chosen
from uldp.mechanisms.randomizers.summation import MemoizedSummation, Summation
from uldp.mechanisms.randomizers.thresholding import best_threshold, thresholding
from uldp.mechanisms.randomizers.unary_encoding import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.strings.bloom import BloomFilter
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohort_hashing import CohortHashing
from uldp.mechanisms.strings.cohorts import StringEncoding
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Mask, Symbols
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.designs import design_of
from uldp.schemas.specs.groups import Group
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.mechanism_names import MechanismName
from uldp.schemas.specs.mechanisms import LevelsSpec
from uldp.schemas.specs.variable import Variable


def build_protocol(spec: CollectionSpec) -> LdpProtocol:
    """Build the encoding, mechanism and decoder of a collection.

    Raises:
        ValueError: if a mechanism is not for this domain, its epsilon is too small, or the statistic has too many
            cells, or cells that could overflow.
    """
    try:
        parts = {name: build_variable(variable) for name, variable in spec.variables.items()}
    except ValueError as error:
        raise ValueError(f"collection {spec.collection} version {spec.version}: {error}") from error
    protocol = parts[""] if "" in parts else _record(spec, parts)
    _check_size(spec, protocol.mechanism)
    return protocol


def _record(spec: CollectionSpec, parts: Mapping[str, LdpProtocol]) -> LdpProtocol:
    mechanisms = [part.mechanism for part in parts.values()]
    # All parts have the lasting_epsilon of the record, or none of them.
    kind = MemoizedStrata if mechanisms[0].memory else Strata
    strata = kind(mechanisms, [each.share for each in spec.variables.values()])
    encoding = RecordEncoding([part.encoding for part in parts.values()], strata)
    return LdpProtocol(encoding, strata, StrataDecoder(list(parts), [part.decoder for part in parts.values()], strata))


def _check_size(spec: CollectionSpec, mechanism: Mechanism) -> None:
    which = f"collection {spec.collection} version {spec.version}"
    if mechanism.statistic_size > MOST_CELLS:
        remedy = "fewer attributes, or attributes with fewer values" if spec.domain.record else "fewer values"
        raise ValueError(
            f"{which}: {spec.mechanism.name} has {mechanism.statistic_size:,} cells, but a statistic holds at most"
            f" {MOST_CELLS:,}; use a domain with {remedy}"
        )
    if mechanism.largest_step * MOST_REPORTS >= 1 << 63:
        raise ValueError(
            f"{which}: a report of {spec.mechanism.name} moves a cell by up to {mechanism.largest_step:,}, so"
            f" {MOST_REPORTS:,} reports could exceed 64 bits; choose another mechanism"
        )


def build_variable(variable: Variable) -> LdpProtocol:
    """Build the encoding, mechanism and decoder of one variable."""
    return _BUILDERS[variable.mechanism.name](variable, variable.parameters)


def _kept(spec: Any, once: Mechanism, build: Callable[[float], Mechanism]) -> Mechanism:
    """Return a mechanism; with ``lasting_epsilon`` in its spec, that of devices that keep their responses.

    Args:
        spec: The spec of the mechanism.
        once: The mechanism.
        build: Builds it with another epsilon, but with all else as the epsilon of the spec has it.
    """
    if isinstance(spec, PrivateSpec) and spec.lasting_epsilon is not None:
        return Memoized(build(spec.lasting_epsilon), once)
    return once


def _pure(build: Callable[[Mask, Any, Any], PureMechanism]) -> Callable[[Variable, Any], LdpProtocol]:
    """Return the builder of a mechanism for shares of values.

    ``build`` gets the sensitive symbols, the spec, and the epsilon: that of the spec, or its lasting one.

    The common mechanism Q_cmn of PUM is over Z = X and then one bot for each tag. The bots are sensitive: Z_S = X_S and
    all bots (Murakami & Kawamoto, section 5.1).
    """

    def protocol(variable: Variable, spec: Any) -> LdpProtocol:
        if any(variable.zones):
            return _zoned(build, variable, spec)
        pum = Pum.of(variable)
        sensitive = _with_bots(pum.sensitive, len(pum.tags))
        mechanism = build(sensitive, spec, spec.epsilon)
        decoder = PureDecoder(
            mechanism.channel,
            pum,
            chance_support=mechanism.chance_support,
            simultaneous=variable.simultaneous,
        )
        return LdpProtocol(pum, _kept(spec, mechanism, partial(build, sensitive, spec)), decoder)

    return protocol


def _folded(build: Callable[[int, Any, Any], FoldedMechanism]) -> Callable[[Variable, Any], LdpProtocol]:
    """Return the builder of a mechanism with a fold. ``build`` gets |X|, the spec, and an epsilon, as for ``_pure``."""

    def protocol(variable: Variable, spec: Any) -> LdpProtocol:
        pum, mechanism = Pum.of(variable), build(variable.size, spec, spec.epsilon)
        decoder = FoldedDecoder(mechanism, pum, simultaneous=variable.simultaneous)
        return LdpProtocol(pum, _kept(spec, mechanism, partial(build, variable.size, spec)), decoder)

    return protocol


def _with_bots(values: Mask, bots: int) -> Mask:
    """Return which symbols are sensitive: some of the values, and the bots behind them."""
    return np.concatenate([values, np.ones(bots, dtype=np.bool_)])


def _zoned(build: Callable[[Mask, Any, Any], PureMechanism], variable: Variable, spec: Any) -> LdpProtocol:
    """Build the protocol of tags with zones, of which some may be nested."""
    zoning = Zoning.of(variable)
    values, bots = zoning.pum.sensitive, zoning.bots
    nested: NestedResponse | None = None
    mechanism: NestedResponse | PureMechanism
    kept: Mechanism
    if any(zoning.nests):
        mechanism = kept = nested = NestedResponse(values, spec.epsilon, [bot.nest for bot in bots])
    else:
        sensitive = _with_bots(values, len(bots))
        mechanism = build(sensitive, spec, spec.epsilon)
        kept = _kept(spec, mechanism, partial(build, sensitive, spec))
    read = partial(PureDecoder, mechanism.channel, simultaneous=variable.simultaneous)
    return LdpProtocol(zoning, kept, ZonedDecoder(zoning, nested, read))


_RANDOMIZED_RESPONSE = _pure(lambda sensitive, spec, epsilon: RandomizedResponse(sensitive, epsilon))
_OUE = _pure(lambda sensitive, spec, epsilon: UnaryEncoding(sensitive, epsilon, OUE_THETA))
_SUE = _pure(lambda sensitive, spec, epsilon: UnaryEncoding(sensitive, epsilon, sue_theta(epsilon)))

_HRR = _folded(lambda size, spec, epsilon: HadamardResponse(size, epsilon))


def _subset(sensitive: Mask, spec: Any, epsilon: float) -> SubsetSelection:
    return SubsetSelection(len(sensitive), epsilon, best_chosen(len(sensitive), spec.epsilon))


def _hadamard(sensitive: Mask, spec: Any, epsilon: float) -> BlockResponse:
    return BlockResponse(sensitive, epsilon, HadamardDesign(int(sensitive.sum())))


def _block_design(sensitive: Mask, spec: Any, epsilon: float) -> BlockResponse:
    return BlockResponse(sensitive, epsilon, CyclicDesign(design_of(spec.w, int(sensitive.sum()), len(sensitive))))


def _groups(size: int, groups: Sequence[Group]) -> tuple[list[float], Symbols]:
    """Return the epsilon of each group, and the group of each symbol."""
    group = np.zeros(size, dtype=np.int64)
    for number, each in enumerate(groups):
        group[np.array(each.values)] = number  # the spec has made them indices
    return [each.epsilon for each in groups], group


def _the(sensitive: Mask, spec: Any, epsilon: float) -> UnaryEncoding:
    return thresholding(sensitive, epsilon, best_threshold(epsilon) if spec.theta is None else spec.theta)


def _she(variable: Variable, spec: Any) -> LdpProtocol:
    pum = Pum.of(variable)
    decoder = SummationDecoder(pum, spec.epsilon, simultaneous=variable.simultaneous)
    if spec.lasting_epsilon is not None:
        return LdpProtocol(pum, MemoizedSummation(variable.size, spec.epsilon, spec.lasting_epsilon), decoder)
    return LdpProtocol(pum, Summation(variable.size, spec.epsilon), decoder)


def _duchi(variable: Variable, spec: Any) -> LdpProtocol:
    number = variable.domain.number
    assert number is not None  # the spec has checked this
    # With memory, of the two ends alone, because the device keeps its rounding: so most changes need no new response.
    grid = GRID if spec.lasting_epsilon is None else 1
    mechanism = _kept(spec, Duchi(spec.epsilon, grid), lambda epsilon: Duchi(epsilon, grid))
    encoding = NumberEncoding(number.low, number.high, grid)
    return LdpProtocol(encoding, mechanism, MeanDecoder(number.low, number.high, spec.epsilon))


def _block(variable: Variable, spec: Any) -> LdpProtocol:
    number = variable.domain.number
    assert number is not None  # the spec has checked this
    block = Block(spec.epsilon, spec.bins, spec.width)
    encoding = NumberEncoding(number.low, number.high, spec.bins)
    mechanism = _kept(spec, block, lambda epsilon: Block(epsilon, spec.bins, block.width))
    return LdpProtocol(encoding, mechanism, BlockDecoder(block, number.low, number.high))


def _bit_flip(variable: Variable, spec: Any) -> LdpProtocol:
    widths = design_widths(variable.size, spec.bits)
    shares = [1 / len(widths)] * len(widths)
    once = strata = Strata([FlippedBits(width, spec.epsilon) for width in widths], shares, "design")
    if spec.lasting_epsilon is not None:
        kept = [FlippedBits(width, spec.lasting_epsilon) for width in widths]
        strata = MemoizedStrata([Memoized(*pair) for pair in zip(kept, once.parts, strict=True)], shares, "design")
    encoding = DesignEncoding(Pum.of(variable), spec.bits, strata)
    return LdpProtocol(encoding, strata, DesignDecoder(once, simultaneous=variable.simultaneous))


def _levels(variable: Variable, spec: LevelsSpec) -> LdpProtocol:
    variables = [replace(variable, mechanism=spec.at(level)) for level in spec.levels.values()]
    protocols = [build_variable(each) for each in variables]
    kind = Strata if spec.lasting_epsilon is None else MemoizedStrata
    shares = [spec.share_of(level) for level in spec.levels.values()]
    strata = kind([each.mechanism for each in protocols], shares, "level")
    budgets = ", ".join(f"{level.epsilon:g} at {name}" for name, level in spec.levels.items())
    terms = f"users choose their level of privacy, whatever they hold, and a report names it: epsilon {budgets}"
    strata.guarantee = replace(strata.guarantee, terms=terms)
    names, decoders = tuple(spec.levels), [each.decoder for each in protocols if isinstance(each.decoder, PureDecoder)]
    encoding = LevelEncoding(Pum.of(variable), strata, names)
    return LdpProtocol(encoding, strata, LevelsDecoder(strata, names, decoders))


def _metric(variable: Variable, spec: Any) -> LdpProtocol:
    mechanism = MetricMechanism(variable.size, spec.epsilon, spec.columns)
    decoder = MatrixDecoder(mechanism, simultaneous=variable.simultaneous)
    return LdpProtocol(Pum.of(variable), mechanism, decoder)


def _strings(build: Callable[[Any, float], BloomFilter | CohortHashing]) -> Callable[[Variable, Any], LdpProtocol]:
    """Return the builder of a mechanism for strings; ``build`` gets the spec, and its epsilon or its lasting one."""

    def protocol(variable: Variable, spec: Any) -> LdpProtocol:
        assert variable.domain.strings is not None  # the spec has checked this
        longest, mechanism = variable.domain.strings.longest, build(spec, spec.epsilon)
        decoder = CandidateDecoder(mechanism, variable.candidates, longest, simultaneous=variable.simultaneous)
        return LdpProtocol(StringEncoding(longest), _kept(spec, mechanism, partial(build, spec)), decoder)

    return protocol


# The names in the literature. The spec has checked the conditions that distinguish them (two values, one sensitive
# value, theta). The models of the specs differ in their parameters, hence ``Any``.
_BUILDERS: Mapping[MechanismName, Callable[[Variable, Any], LdpProtocol]] = {
    "identity": _RANDOMIZED_RESPONSE,
    "rr": _RANDOMIZED_RESPONSE,
    "warner": _RANDOMIZED_RESPONSE,
    "mangat": _RANDOMIZED_RESPONSE,
    "urr": _RANDOMIZED_RESPONSE,
    "rappor": _pure(lambda sensitive, spec, epsilon: UnaryEncoding(sensitive, epsilon, spec.theta)),
    "sue": _SUE,
    "oue": _OUE,
    "urap": _pure(lambda s, spec, epsilon: UnaryEncoding(s, epsilon, spec.theta or sue_theta(epsilon))),
    "uoue": _OUE,
    "ss": _pure(_subset),
    "uhr": _pure(_hadamard),
    "uss": _pure(
        lambda sensitive, spec, epsilon: SubsetSelection(len(sensitive), epsilon, spec.w, sensitive=sensitive)
    ),
    "ubd": _pure(_block_design),
    "olh": _pure(lambda sensitive, spec, epsilon: LocalHashing(len(sensitive), epsilon, spec.buckets)),
    "hrr": _HRR,
    "blh": _HRR,
    "linear-olh": _folded(
        lambda size, spec, epsilon: LinearHashing(size, epsilon, best_linear_space(size, spec.epsilon))
    ),
    "pgr": _folded(
        lambda size, spec, epsilon: ProjectiveGeometryResponse(size, epsilon, best_point_space(size, spec.epsilon))
    ),
    "the": _pure(_the),
    "she": _she,
    "duchi": _duchi,
    "block": _block,
    "bit-flip": _bit_flip,
    "metric": _metric,
    "levels": _levels,
    "idue": _pure(lambda sensitive, spec, epsilon: InputDiscriminativeEncoding(*_groups(len(sensitive), spec.groups))),
    "bloom": _strings(lambda spec, eps: BloomFilter(eps, spec.bits, spec.hashes, spec.cohorts, spec.theta)),
    "cohort-olh": _strings(lambda spec, epsilon: CohortHashing(epsilon, spec.buckets, spec.cohorts)),
}
