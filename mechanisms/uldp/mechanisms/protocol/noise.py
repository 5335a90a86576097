"""Kinds of noise that mechanisms share: a payload drawn uniformly in place of the true one, and bits drawn alone."""

import math
from abc import abstractmethod

import numpy as np

from uldp.mechanisms.protocol.mechanism import Mechanism, Privacy, Randomness
from uldp.schemas.arrays import Floats, Packed, Payloads


class UniformNoise(Mechanism):
    """A mechanism that sends a uniform payload with some probability, and else one that depends on the symbol alone.

    So uniform noise on its reports gives the law of the same mechanism with a smaller epsilon. It is the same mechanism
    if its symbols and payloads are, and the set of payloads that each symbol makes likelier.

    Attributes:
        noise_probability: The probability that ``perturb`` draws noise, where it has one.
        answers: How many answers there are, if noise is a uniform one but the true one; None if it may be that, too.
    """

    noise_probability: float
    answers: int | None = None

    @property
    def uniform_probability(self) -> float:
        """The probability of a uniform payload, which is independent of the symbol: by default that of noise.

        Of noise that is never the true one of g answers it is g/(g-1) times that, for one of all g is the true one.
        """
        return self.noise_probability * (1 if self.answers is None else self.answers / (self.answers - 1))

    @property
    def log_payloads(self) -> float:
        """The natural logarithm of the number of payloads."""
        assert self.form.symbols is not None  # mechanisms that send bytes know it themselves
        return math.log(self.form.symbols)

    @property
    def repeat_probability(self) -> float:
        """See ``Mechanism``. Under LDP exact, as ``largest_probability``: two reports of one symbol are the most alike.

        With N payloads and the uniform probability u, a payload has a = u/N, or E a if the symbol makes it likelier;
        S of these take the rest, S (E - 1) a = 1 - u. So the squares sum to a^2 N + (E^2 - 1) a^2 S.
        """
        if self._odds is None:
            return 1.0
        u = self.uniform_probability
        return math.exp(math.log(u * (u + (1 - u) * (self._odds + 1))) - self.log_payloads)

    @property
    def largest_probability(self) -> float:
        """See ``Mechanism``: E a."""
        return (
            1.0 if self._odds is None else self._odds * math.exp(math.log(self.uniform_probability) - self.log_payloads)
        )

    @property
    def _odds(self) -> float | None:
        """E, by which the most probable payloads are likelier than the others; None if some symbol is not protected."""
        if self.guarantee.epsilon is None or self.guarantee.privacy is not Privacy.LDP:
            return None
        return math.exp(self.guarantee.epsilon)

    @abstractmethod
    def uniform(self, n: int, randomness: Randomness) -> Payloads:
        """Draw n payloads uniformly from those that noise can give."""


class BitNoise(Mechanism):
    """A mechanism that reports bits, of which it draws each alone: whether it is a bit of the symbol decides its law.

    Attributes:
        bits: The number of bits; a payload of ``alone`` ends with them.
    """

    bits: int

    @property
    @abstractmethod
    def bit_law(self) -> tuple[Floats, Floats]:
        """Shape (bits,) each: the probability that a bit of the symbol is cleared, and that any other bit is set."""

    @property
    def alone(self) -> "BitNoise":
        """The mechanism that reports the bits alone; another one if a report has further noise, as of sums."""
        return self

    def reported(self, bits: Packed, randomness: Randomness) -> Packed:
        """Return the payloads of n reports of ``alone``, with the noise that they have beside that of their bits."""
        return bits

    @property
    def repeat_probability(self) -> float:
        """See ``Mechanism``. Two reports of one symbol are the most alike, and differ by their noise alone."""
        alike = [cleared**2 + (1 - cleared) ** 2 for cleared in self.bit_law]
        return float(np.prod(np.maximum(*alike)))

    @property
    def largest_probability(self) -> float:
        return float(np.prod(np.maximum(*[np.maximum(cleared, 1 - cleared) for cleared in self.bit_law])))
