"""Kinds of noise that mechanisms share: a payload drawn uniformly in place of the true one, and bits drawn alone."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import cast

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm, threshold, thresholds
from uldp.mechanisms.protocol.mechanism import Mechanism, Privacy, Randomness, WithMemory
from uldp.schemas.arrays import Counts, Floats, Mask, Packed, Payloads

# again holds a float and two bytes for each bit; those for this many bits fit a core's cache.
_BITS_AT_ONCE = 1 << 17


class Noise(Mechanism):
    """A mechanism whose noise can be drawn anew on a permanent response, by the same mechanism with less noise.

    ``Memoized`` says what follows. ``noise`` are the probabilities that ``missing`` gives.
    """

    @property
    def renewable(self) -> "Noise":
        return self

    @property
    def alone(self) -> "Noise":
        """The mechanism that reports the bits alone; another one if a report has further noise, as of sums."""
        return self

    @abstractmethod
    def missing(self, inner: Mechanism) -> Floats:
        """Return the probabilities of the noise that turns the law of ``inner``, one as ``alone``, into this law."""

    @abstractmethod
    def again(self, permanent: Payloads, noise: Floats, randomness: Randomness) -> Payloads:
        """Perturb n permanent responses into n payloads. The draws are the same for all responses."""

    @abstractmethod
    def noise_form(self, noise: Floats) -> DeviceForm:
        """Return what a device computes ``again`` by."""

    def equal_probability(self, kept: WithMemory, inputs: Floats | int) -> float | None:
        """Return the probability that two reports of a device are equal; None if it is not known.

        ``inputs`` is the distribution of the symbols of devices; or the symbol, if strings are too many for that.
        """
        return None

    def twice_probability(self, kept: WithMemory, r: Floats) -> Floats | None:
        """Return the probability that two reports of a device both set a bit, shape (bits,); None without such bits."""
        return None

    def differences(self, first: Payloads, other: Payloads) -> Counts:
        """Return in how many places of their noise two reports of each of n devices differ, shape (n,)."""
        return np.asarray(np.bitwise_count(first ^ other).reshape(len(first), -1).sum(axis=1, dtype=np.int64))


class UniformNoise(Noise):
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

    def links(self, n: int) -> bool:
        return self.log_payloads > math.log(n)

    def missing(self, inner: Mechanism) -> Floats:
        """Return the probability that a uniform payload replaces the permanent one, shape (1,)."""
        there = cast(UniformNoise, inner).uniform_probability
        return np.array([(self.uniform_probability - there) / (1 - there)])

    def again(self, permanent: Payloads, noise: Floats, randomness: Randomness) -> Payloads:
        n = len(permanent)
        replaced = randomness.random(n) < noise[0]
        drawn = self.uniform(n, randomness)
        return np.asarray(np.where(replaced.reshape(-1, *[1] * (drawn.ndim - 1)), drawn, permanent))

    def noise_form(self, noise: Floats) -> DeviceForm:
        return {"replace": threshold(noise[0])}

    def equal_probability(self, kept: WithMemory, inputs: Floats | int) -> float:
        """See the base class.

        With rho for the probability of ``again`` to replace a payload, P for the law of the response, and u for that of
        uniform payloads, it is (1 - rho)^2 + 2 rho (1 - rho) E_P[u] + rho^2 sum u^2.
        """
        rho, inner = float(kept.noise[0]), cast(UniformNoise, kept.inner)
        response, report = (None if isinstance(inputs, int) else each.law(inputs) for each in (inner, self))
        if rho == 0:
            again = squares = 0.0
        elif response is not None and report is not None:
            # The law of a report is that of a response, and of a uniform payload in its place.
            uniform = np.maximum((report - (1 - rho) * response) / rho, 0.0)
            again, squares = float(response @ uniform), float(uniform @ uniform)
        else:
            squares = math.exp(-self.log_payloads)
            again = squares * inner._uniform_share(inputs)
        return (1 - rho) ** 2 + 2 * rho * (1 - rho) * again + rho**2 * squares

    def _uniform_share(self, inputs: Floats | int) -> float:
        """Return the share of payloads that noise can give: all, but of a symbol that is not sensitive only noise."""
        if self.sensitive is None or isinstance(inputs, int):
            return 1.0
        # A set has several symbols, each of which is sensitive.
        return float(np.where(self.sensitive, 1.0, self.uniform_probability) @ inputs / inputs.sum())


class BitNoise(Noise):
    """A mechanism that reports bits, of which it draws each alone: whether it is a bit of the symbol decides its law.

    Attributes:
        bits: The number of bits; a payload of ``alone`` ends with them.
    """

    bits: int

    @property
    @abstractmethod
    def bit_law(self) -> tuple[Floats, Floats]:
        """Shape (bits,) each: the probability that a bit of the symbol is cleared, and that any other bit is set."""

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

    def missing(self, inner: Mechanism) -> Floats:
        """Return the probabilities that each bit is set and cleared, shape (2, bits)."""
        (unset, q), (unset_once, q_once) = cast(BitNoise, inner).bit_law, self.bit_law
        p = 1 - unset
        becomes_set = p * q_once - (1 - unset_once) * q
        cleared = unset_once * (1 - q) - unset * (1 - q_once)
        return np.stack([becomes_set, cleared]) / (p - q)

    def again(self, permanent: Payloads, noise: Floats, randomness: Randomness) -> Payloads:
        def perturbed(block: slice) -> Mask:
            bits = np.unpackbits(kept[block], axis=1, count=self.bits)
            drawn = randomness.random(bits.shape)
            return np.asarray(np.where(bits, drawn >= noise[1], drawn < noise[0]))

        n, size, width = len(permanent), self.bits, cast(int, self.alone.form.width)
        head, kept = np.split(cast(Packed, permanent)[:, :width], [width + -size // 8], axis=1)
        packed = pack_rows(n, size, perturbed, _BITS_AT_ONCE)
        return self.reported(np.concatenate([head, packed], axis=1), randomness)

    def noise_form(self, noise: Floats) -> DeviceForm:
        return {"set": thresholds(noise[0]), "clear": thresholds(noise[1])}

    def twice_probability(self, kept: WithMemory, r: Floats) -> Floats | None:
        if self.channel is None:
            return None
        (unset, q), (becomes_set, cleared) = cast(BitNoise, kept.inner).bit_law, kept.noise
        set_ = q + (1 - unset - q) * r[: len(q)]  # one more input of a design is that of the symbols outside of it
        return np.asarray(set_ * (1 - cleared) ** 2 + (1 - set_) * becomes_set**2)


def pack_rows(n: int, size: int, bits: Callable[[slice], Mask], at_once: int) -> Packed:
    """Pack n rows of ``size`` bits, block by block; ``bits`` makes those of a slice, at most ``at_once`` or a row."""
    packed = np.empty((n, -(-size // 8)), dtype=np.uint8)
    rows = max(1, at_once // size)
    for start in range(0, n, rows):
        block = slice(start, start + rows)
        packed[block] = np.packbits(bits(block), axis=1)
    return packed
