"""Protocols for the laws that hold for each, with devices of which the truth is known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.duchi import GRID, Duchi, MeanDecoder, NumberEncoding
from uldp.mechanisms.encoding import Held
from uldp.mechanisms.mechanism import PureMechanism
from uldp.mechanisms.memoized import Memoized
from uldp.mechanisms.protocol import LdpProtocol
from uldp.mechanisms.pum import Pum
from uldp.mechanisms.pure import PureDecoder
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.mechanisms.subset_selection import SubsetSelection
from uldp.mechanisms.unary_encoding import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Floats


@dataclass(frozen=True)
class Example:
    """A protocol, and devices that use it.

    Attributes:
        protocol: The protocol.
        hold: From a generator and n, what n devices hold of each variable, drawn i.i.d.
        truth: Shape (m,): what ``decoder.linear`` estimates for these devices.
    """

    protocol: LdpProtocol
    hold: Callable[[Generator, int], list[Held]]
    truth: Floats


def protocols() -> dict[str, Example]:
    """Return an example of each kind of protocol, by name."""
    everything, sensitive = np.ones(len(_SHARES), dtype=np.bool_), np.arange(len(_SHARES)) < 3
    hiding = np.append(sensitive, True)
    return {
        "duchi": _mean(-3.0, 24.0, 1.0),
        "duchi-large-epsilon": _mean(0.0, 1.0, 6.0),
        "rr": _shares(RandomizedResponse(everything, 1.0), 0),
        "urr": _shares(RandomizedResponse(hiding, 1.0), 1),
        "oue": _shares(UnaryEncoding(everything, 1.0, OUE_THETA), 0),
        "ss": _shares(SubsetSelection(len(_SHARES), 1.0), 0),
        "urap": _shares(UnaryEncoding(hiding, 1.0, sue_theta(1.0)), 1),
        "urr-memoized": _shares(Memoized(RandomizedResponse(hiding, 3.0), RandomizedResponse(hiding, 1.0)), 1),
        "urap-memoized": _shares(
            Memoized(UnaryEncoding(hiding, 3.0, sue_theta(3.0)), UnaryEncoding(hiding, 1.0, sue_theta(1.0))), 1
        ),
    }


_SHARES = np.array([0.3, 0.05, 0.1, 0.0, 0.15, 0.05, 0.2, 0.15])


def _shares(mechanism: PureMechanism, tags: int) -> Example:
    """Shares of eight values; with a tag, a fifth of the devices hide their value behind it."""
    pum = Pum(mechanism.sensitive[: len(_SHARES)], ("home",)[:tags], np.tile(_SHARES, (tags, 1)))

    def hold(rng: Generator, n: int) -> list[Held]:
        return [Held(rng.choice(len(_SHARES), n, p=_SHARES), -(rng.random(n) >= 0.2 * tags).astype(np.int64))]

    truth = np.append(0.8 * _SHARES, 0.2) if tags else _SHARES
    return Example(LdpProtocol(pum, mechanism, PureDecoder(mechanism.channel, pum)), hold, truth)


def _mean(low: float, high: float, epsilon: float) -> Example:
    """The mean of numbers, of which most are near the lower end and some beyond the upper one."""
    protocol = LdpProtocol(NumberEncoding(low, high, GRID), Duchi(epsilon), MeanDecoder(low, high, epsilon))

    def hold(rng: Generator, n: int) -> list[Held]:
        # A tenth is at 1.5, outside of [0, 1]; the others have the mean 1/4.
        places = np.where(rng.random(n) < 0.1, 1.5, rng.beta(1, 3, n))
        return [Held(low + places * (high - low), np.full(n, -1))]

    return Example(protocol, hold, np.array([low + (0.1 + 0.9 / 4) * (high - low)]))
