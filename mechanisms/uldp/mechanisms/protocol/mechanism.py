"""The interface of every mechanism: a symbol becomes a payload on the device, payloads a statistic at the collector."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.cells import Cells, as_dense
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Symbols, Values

if TYPE_CHECKING:
    from uldp.mechanisms.protocol.noise import Noise


class Randomness(Protocol):
    """The randomness for perturb: a ``numpy.random.Generator`` in a simulation, ``SystemRandomness`` on a device."""

    def random(self, size: int | tuple[int, ...]) -> Floats:
        """Draw floats uniformly from [0, 1)."""

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Draw integers uniformly from [low, high)."""


@dataclass(frozen=True)
class PayloadForm:
    """The form of a payload on the wire: a symbol, or bytes that only the mechanism reads. One attribute is None.

    Attributes:
        symbols: A payload is a number below this, at most 2^31: shape (n,) uint32 for n reports.
        width: A payload is exactly this many bytes: shape (n, width) uint8 for n reports.
    """

    symbols: int | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        if (self.symbols is None) == (self.width is None):
            raise ValueError("a payload is either a symbol or bytes")
        if self.symbols is not None and not 1 <= self.symbols <= 1 << 31:
            raise ValueError(f"a payload has 1 to 2^31 symbols, got {self.symbols}")


class Privacy(StrEnum):
    """The definition of privacy that a mechanism meets."""

    NONE = "none"
    LDP = "ldp"
    ULDP = "uldp"
    ID_LDP = "id-ldp"
    METRIC = "metric"


@dataclass(frozen=True)
class Guarantee:
    """The promise to the user of a device about one report, and about all reports of one value.

    Attributes:
        privacy: The definition that the mechanism meets.
        epsilon: The budget of one report in nats; None without privacy.
        lasting: The budget of two or more reports of one value, in nats, which may be more than twice epsilon; None if
            each report spends epsilon anew.
        terms: A clause about the odds of two values, where epsilon does not say all: epsilon is the most then.
        public: A clause about what a report tells everybody, besides what the mechanism protects.
    """

    privacy: Privacy
    epsilon: float | None
    lasting: float | None = None
    terms: str = ""
    public: str = ""

    def __post_init__(self) -> None:
        if self.epsilon is not None and not self.epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {self.epsilon}")

    @classmethod
    def of(cls, sensitive: Mask, epsilon: float | None) -> Self:
        """Return the guarantee of a mechanism with this budget that protects the symbols in ``sensitive``.

        ValueError if epsilon is not positive, or no symbol is sensitive.
        """
        if epsilon is None:
            return cls(Privacy.NONE, None)
        if not sensitive.any():
            raise ValueError("no symbol is sensitive, so epsilon would protect nothing")
        return cls(Privacy.LDP if sensitive.all() else Privacy.ULDP, epsilon)


#: The most cells of a statistic.
MOST_CELLS = 1 << 24
#: A statistic counts up to this many reports. Cells are int64, so a report moves a cell by less than 2^63 / 2^40.
MOST_REPORTS = 1 << 40
#: A payload is improbable if at most this share of honest reports is so.
IMPROBABLE_TAIL = 1e-6
#: A payload is impossible if at most this share of honest reports is so: it is rejected, whatever it says.
IMPOSSIBLE_TAIL = 1e-12
# describe shows up to this many bytes of a payload.
_SHOWN_BYTES = 20


class Mechanism(ABC):
    """An obfuscation mechanism over the symbols Z = {0, ..., size-1}, and the statistic of its payloads.

    The statistic is a vector of int64, the cells. Each report adds to it, so the statistics of windows can be added.

    Attributes:
        guarantee: The promise about one report.
        size: |Z|.
        form: The form of a payload.
        statistic_size: Number of cells, at most ``MOST_CELLS``.
        largest_step: The most that one report moves a cell; ``largest_step * MOST_REPORTS < 2^63``.
        partitions: Whether each report is in exactly one cell, so that the cells are 0 or more and sum to n.
        counts_payloads: Whether a payload is the number of the cell that counts it: ``tally`` is ``count_symbols``.
        memory: Whether a device keeps a permanent response, so that its reports depend on each other.
        reports_symbols: Whether a payload is a symbol of Z.
        held: The number of different symbols that a device holds, l.
        few_symbols: Whether symbols are few enough for a distribution over them; those of strings are not.
        equal_pairs: Whether epsilon is the budget of any two protected symbols; otherwise of the farthest alone.
        structure: Further sizes in which a permanent response and its reports must agree.
        chance_support: The probability that a report without noise supports a given other symbol than its own.
        channel: The probabilities that a report supports a symbol; None if its cells give no support counts.
        sensitive: Shape (|Z|,): whether each symbol is protected; None if all are, or a symbol is no value.
        inner: The mechanism of the permanent response, where a report is this response with noise on top.
        parts: The mechanisms by one of which each report is, if it is ``Strata``; empty otherwise.
        shares: Shape (S,): the probability with which devices draw each of the S parts.
        first_symbols: Shape (S,): the first input symbol of each part.
        noun: What a part is for, as text.
    """

    guarantee: Guarantee
    size: int
    form: PayloadForm
    statistic_size: int
    largest_step: int = 1
    partitions: bool
    counts_payloads: bool = False
    memory: bool = False
    reports_symbols: bool = False
    held: int = 1
    few_symbols: bool = True
    equal_pairs: bool = True
    structure: tuple[int, ...] = ()
    chance_support: float = 0.0
    channel: Channel | None = None
    sensitive: Mask | None = None
    inner: "Mechanism | None" = None
    parts: tuple["Mechanism", ...] = ()
    shares: Floats
    first_symbols: Symbols
    noun: str

    @property
    def repeat_probability(self) -> float:
        """A bound on the probability that two honest reports have one payload, whatever their symbols; 1 if unknown."""
        return 1.0

    @property
    def largest_probability(self) -> float:
        """The most probability that an honest report has one payload with, whatever its symbol; an upper bound."""
        return math.sqrt(self.repeat_probability)

    @abstractmethod
    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Perturb true symbols of shape (n,) into n payloads; of shape (n, held) where a device holds several.

        The draws are the same whatever the symbols, and whether noise replaces them: otherwise the time that a report
        takes would tell noise from truth. ValueError, whose message names no symbol, if one is outside of Z.
        """

    @property
    def bare(self) -> "Mechanism":
        """The mechanism of one report whose device keeps no response: with memory, that of the same law."""
        return self

    @property
    def kept(self) -> "WithMemory | None":
        """This mechanism, if its device keeps a permanent response; otherwise None."""
        return None

    @property
    def renewable(self) -> "Noise | None":
        """This mechanism, if its noise can be drawn anew on a response that a device keeps; otherwise None."""
        return None

    def links(self, n: int) -> bool:
        """Return whether there are more responses than n users, so that a kept one links the reports of a device."""
        return False

    def warnings(self, n: int) -> Iterator[str]:
        """Yield a line for each probable mistake of a spec with this mechanism, given n reports in a window."""
        yield from ()

    @abstractmethod
    def possible(self, payloads: Payloads) -> Mask:
        """Return which of n payloads honest devices send, in their one canonical form; shape (n,).

        A payload that is farther out than those of all but a share ``IMPOSSIBLE_TAIL`` of honest reports is not
        possible, for a forged report weighs the most that a possible payload allows.
        """

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        """Return which of n payloads are ``possible``, and which fewer than ``IMPROBABLE_TAIL`` of devices send."""
        return self.possible(payloads), np.zeros(len(payloads), dtype=np.bool_)

    @abstractmethod
    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Return the statistic of each of k groups of payloads. It is deterministic, and additive over payloads.

        The n payloads, in pieces, have passed ``possible``; ``groups`` has the group of each, shape (n,).
        """

    def split_cells(self, cells: Counts) -> list[tuple[Counts, int]]:
        """Return the cells of each part, and the number of its reports."""
        return []

    def split_payloads(self, payloads: Payloads) -> Iterator[tuple[int, Symbols, Payloads]]:
        """Yield for each part its number, the rows of its payloads, and these payloads as the part has sent them."""
        yield from ()

    def revealed(self, cells: Counts) -> int | None:
        """Return how many of the reports behind these cells are outside of Y_P: no protected value can send them.

        None if that is not known, or if epsilon does not bound the odds of any two protected values.
        """
        if self.bare is not self:
            return self.bare.revealed(cells)
        return 0 if self.guarantee.privacy in (Privacy.LDP, Privacy.ID_LDP) else None

    def revealed_share(self) -> float | None:
        """Return the share of reports outside of Y_P if all symbols are held equally often; None as ``revealed``."""
        if self.bare is not self:
            return self.bare.revealed_share()
        return 0.0 if self.guarantee.privacy in (Privacy.LDP, Privacy.ID_LDP) else None

    def law(self, r: Floats) -> Floats | None:
        """Return the probability of each payload if symbols are distributed as ``r``, shape (symbols,).

        None if payloads are bytes, or the law is not known; tests of a client then know less.
        """
        return None

    def describe(self, payload: int | bytes) -> str:
        """Return what a possible payload says, in one line of bounded length."""
        if isinstance(payload, int):
            return f"symbol {payload} of {self.form.symbols}"
        shown = payload[:_SHOWN_BYTES]
        return f"{len(payload):,} bytes: {shown.hex()}{'' if shown == payload else '...'}"

    def device_form(self) -> DeviceForm:
        """Return what a device computes a payload by, given a symbol; NotImplementedError without such a form."""
        raise NotImplementedError(f"{type(self).__name__} has no form in a table for devices; write its device_form")

    def device_facts(self) -> Iterator[tuple[str, str]]:
        """Yield numbers that a device needs beside the spec, each a heading of one word and a text of one line."""
        yield from ()

    def statistic(self, payloads: Payloads) -> Counts:
        """Return the statistic of payloads that have passed ``possible``, shape (statistic_size,)."""
        return as_dense(self.tally([payloads], np.zeros(len(payloads), dtype=np.int64), 1)[0])

    def check_symbols(self, symbols: Values) -> None:
        """Raise ValueError if a symbol is outside of Z; the message holds no symbol."""
        if symbols.size and (symbols.min() < 0 or symbols.max() >= self.size):
            raise ValueError(f"a value is outside of the {self.size} symbols of the domain and its tags")

    def held_symbols(self, symbols: Values, held: int) -> Values:
        """Return the l different symbols of Z that each device holds, shape (n, l); one may come in shape (n,)."""
        self.check_symbols(symbols)
        if held == 1:
            symbols = symbols.reshape(-1, 1)
        if symbols.shape != (len(symbols), held) or (np.diff(np.sort(symbols, axis=1), axis=1) == 0).any():
            raise ValueError(f"a device holds {held} different symbols of the {self.size}")
        return symbols


class WithMemory(Mechanism):
    """A mechanism whose device keeps a permanent response to a symbol, and reports it with noise on top."""

    memory = True
    renewed: "Noise"  # the mechanism whose noise each report has on top; of strata, each part has its own
    noise: Floats  # the probabilities of this noise; see ``Noise.missing``

    @property
    def kept(self) -> "WithMemory":
        return self

    @abstractmethod
    def permanent(self, symbols: Values, randomness: Randomness) -> Payloads:
        """Draw the permanent responses for true symbols of shape (n,): payloads, but maybe narrower ones."""

    @abstractmethod
    def again(self, permanent: Payloads, randomness: Randomness) -> Payloads:
        """Perturb n permanent responses into n payloads. The draws are the same for all responses."""

    def kept_under(self, symbols: Values) -> Values:
        """Return the number under which a device keeps its response to each symbol; those of one number share it."""
        return symbols

    def renamed(self, permanent: Payloads, symbols: Values) -> Payloads:
        """Return kept responses as those to these symbols, under whose numbers a device has kept them."""
        return permanent

    def perturb(self, symbols: Values, randomness: Randomness) -> Payloads:
        return self.again(self.permanent(symbols, randomness), randomness)


class PureMechanism(Mechanism):
    """A mechanism whose cells are, or give, support counts over Z: a report supports some symbols of Z.

    A utility-optimized mechanism protects only the ``sensitive`` symbols, Z_S.
    """

    sensitive: Mask
    channel: Channel

    def fold(self, cells: Counts) -> Counts:
        """Return the support counts of cells, shape (|Z|,)."""
        return cells if self.channel.blocks is None else self.channel.blocks.fold(cells)

    def revealed(self, cells: Counts) -> int | None:
        """See the base class. A report outside of Y_P supports one symbol that is not protected."""
        if self.guarantee.privacy is not Privacy.ULDP or self.sensitive.sum() < 2:
            return super().revealed(cells)
        return int(self.fold(cells)[self.channel.q == 0].sum())

    def revealed_share(self) -> float | None:
        if self.guarantee.privacy is not Privacy.ULDP or self.sensitive.sum() < 2:
            return super().revealed_share()
        equal = np.full(self.channel.size, 1 / self.channel.size)
        return float(self.channel.support_probability(equal)[self.channel.q == 0].sum())
