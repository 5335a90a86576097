"""The protocol of a mechanism that is given as a function of its epsilon."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from uldp.mechanisms.decoders.folded_decoder import FoldedDecoder
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.protocol.encoding import Encoding
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohorts import StringEncoding
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.kinds import Strings
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.variable import Variable


def kept(spec: MechanismFamily, once: Mechanism, build: Callable[[float], Mechanism]) -> Mechanism:
    """Return a mechanism; with ``lasting_epsilon`` in its spec, that of devices that keep their responses.

    ``build`` builds it with another epsilon, but with all else as the epsilon of the spec has it.
    """
    return once if spec.lasting_epsilon is None else Memoized(build(spec.lasting_epsilon), once)


class SharesSpec(PrivateSpec):
    """A mechanism with privacy for shares of values; see ``of_shares``."""

    def build(self, sensitive: Mask, epsilon: float) -> PureMechanism:
        """Return the mechanism for symbols of which some are sensitive, shape (|Z|,), with an epsilon in nats."""
        raise NotImplementedError

    def protocol(self, variable: Variable) -> LdpProtocol:
        return of_shares(variable, self, self.build)


def of_shares(variable: Variable, spec: MechanismFamily, build: Callable[[Mask, float], PureMechanism]) -> LdpProtocol:
    """Return the protocol of a mechanism for shares of values.

    The common mechanism Q_cmn of PUM is over Z = X and then one bot for each tag. The bots are sensitive: Z_S = X_S and
    all bots (Murakami & Kawamoto, section 5.1). ``build`` builds it from the mask of sensitive symbols, and an epsilon:
    that of the spec, or its lasting one. ValueError if the mechanism has more cells than symbols, or fewer.
    """
    zoning = Zoning.of(variable) if any(variable.zones) else None
    pum = Pum.of(variable) if zoning is None else zoning.common
    epsilon = math.inf if spec.epsilon is None else spec.epsilon  # without privacy, any likelihood ratio is allowed
    if zoning is not None and any(zoning.nests):
        nested = NestedResponse(pum.sensitive, epsilon, [bot.nest for bot in zoning.bots])
        return LdpProtocol(zoning, nested, ZonedDecoder(nested, zoning, simultaneous=variable.simultaneous))
    sensitive = np.append(pum.sensitive, np.ones(len(pum.tags), dtype=np.bool_))
    once = build(sensitive, epsilon)
    if once.channel.blocks is None and once.statistic_size != once.channel.size:
        raise ValueError(
            f"{spec.name} has {once.statistic_size:,} cells for {once.channel.size:,} symbols; a cell counts"
            " the reports that support its symbol, and those that support none are in no cell"
        )
    mechanism = kept(spec, once, partial(build, sensitive))
    if zoning is not None:
        return LdpProtocol(zoning, mechanism, ZonedDecoder(mechanism, zoning, simultaneous=variable.simultaneous))
    return LdpProtocol(pum, mechanism, PureDecoder(mechanism, pum, simultaneous=variable.simultaneous))


def of_folds(variable: Variable, spec: PrivateSpec, build: Callable[[int, float], FoldedMechanism]) -> LdpProtocol:
    """Return the protocol of a mechanism with a fold. ``build`` gets |X| and an epsilon, as for ``of_shares``."""
    pum, of_size = Pum.of(variable), partial(build, variable.size)
    mechanism = kept(spec, of_size(spec.epsilon), of_size)
    return LdpProtocol(pum, mechanism, FoldedDecoder(mechanism, pum, simultaneous=variable.simultaneous))


def of_sets(
    variable: Variable,
    spec: PrivateSpec,
    build: Callable[[float], PureMechanism],
    encoding: Encoding,
    read: Callable[..., SetDecoder],
) -> LdpProtocol:
    """Return the protocol of a mechanism for devices that hold several symbols.

    ``build`` gets an epsilon, as for ``of_shares``; ``read`` builds the decoder from the mechanism, with the keywords
    that every ``SetDecoder`` has.
    """
    mechanism = kept(spec, build(spec.epsilon), build)
    return LdpProtocol(encoding, mechanism, read(mechanism, simultaneous=variable.simultaneous))


def of_strings(variable: Variable, spec: PrivateSpec, build: Callable[[float], StringMechanism]) -> LdpProtocol:
    """Return the protocol of a mechanism for strings. ``build`` gets its epsilon, or the lasting one."""
    kind, mechanism = variable.of_kind(Strings), kept(spec, build(spec.epsilon), build)
    if kind.spelled:
        raise ValueError(f"domain.strings: {spec.name} spells no strings; remove alphabet and pieces, or use prefixes")
    decoder = CandidateDecoder(mechanism, variable.candidates, kind.longest, simultaneous=variable.simultaneous)
    return LdpProtocol(StringEncoding(kind.longest), mechanism, decoder)
