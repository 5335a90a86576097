"""The interface of every mechanism: perturb on the device, support at the collector, and the channel in between."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.channel import Channel
from uldp.mechanisms.support import AnyCounts
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Symbols, Values


class Randomness(Protocol):
    """The randomness for perturb: a ``numpy.random.Generator`` in a simulation, ``SystemRandomness`` on a device."""

    def random(self, size: int | tuple[int, ...]) -> Floats:
        """Draw floats uniformly from [0, 1)."""

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Draw integers uniformly from [low, high)."""


class Mechanism(ABC):
    """An obfuscation mechanism over Z = {0, ..., |Z|-1}.

    Attributes:
        epsilon: The privacy budget of one report in nats, or None for no privacy.
        sensitive: Shape (|Z|,): whether each symbol is in Z_S. A utility-optimized mechanism protects only Z_S.
        channel: The vectors p and q.
    """

    epsilon: float | None
    sensitive: Mask
    channel: Channel

    @property
    def size(self) -> int:
        """|Z|."""
        return self.channel.size

    @property
    @abstractmethod
    def payload_shape(self) -> tuple[int, ...]:
        """Shape of the payload of one report: () for a symbol (uint32), (ceil(|Z|/8),) for packed bits (uint8)."""

    @abstractmethod
    def perturb(self, values: Values, randomness: Randomness) -> Payloads:
        """Perturb true symbols of shape (n,) into payloads of shape (n, *payload_shape).

        Raises:
            ValueError: if a value is outside of Z.
        """

    @abstractmethod
    def support(self, payloads: Payloads) -> Counts:
        """Count, for each symbol of Z, the payloads that support it. Payloads must have passed ``possible``."""

    @abstractmethod
    def support_by_group(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[AnyCounts]:
        """Compute ``support`` for each of k groups of payloads.

        Args:
            parts: n payloads in pieces, each of shape (m, *payload_shape); must have passed ``possible``.
            groups: Shape (n,): the group of each payload, below k.
            k: The number of groups.
        """

    @abstractmethod
    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads, of shape (n, *payload_shape), the mechanism can produce."""

    def check_values(self, values: Values) -> None:
        """Raise ValueError if a value is not a symbol of Z; the message holds no true value."""
        if values.size and (values.min() < 0 or values.max() >= self.size):
            raise ValueError(f"a value is outside of the {self.size} symbols of the domain and its tags")
