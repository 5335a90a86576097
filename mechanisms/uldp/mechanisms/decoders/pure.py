"""The decoder of mechanisms whose cells are support counts: each symbol of Z has a p and a q.

Wang et al. (USENIX Security 2017, section 3) call such mechanisms pure. ``Channel`` has the formulas.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.table_of import share_tables, tables_by_rows
from uldp.mechanisms.estimators.by_name import estimate_each, estimate_intermediate
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.inference.forecast import LARGEST, draw_counts, equal_shares, falling_shares
from uldp.mechanisms.inference.forgery import forgery_text
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import ChannelLaw, law_of
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.protocol.decoder import Pooling, SharesDecoder, heaviest_fact, require_output_counts, two_digits
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats, Reports, Symbols
from uldp.schemas.flags import Flag
from uldp.schemas.specs.estimators import OF_COUNTS, OF_SYMBOLS
from uldp.schemas.table import Table, TableName

# ``expected_l1`` is the mean of so many windows, or of fewer that have no more than ``LARGEST`` symbols in all.
_WINDOWS = 16
# Rows of fewer windows take longer than one after another.
_FEW_WINDOWS = 2
# The search for a number of users that suffices: the factors between two tries, down and up, and its largest number.
_USERS_STEP, _NAMED_STEP, _MOST_USERS = 1.5, 1.1, 1e10


@dataclass(frozen=True, eq=False, kw_only=True)
class ShareEstimate(Estimate):
    """The unbiased estimate over Z from support counts, or from rows of those of several windows."""

    channel: Channel
    counts: Counts
    reports: Reports


def share_estimate(law: ChannelLaw, counts: Counts, n: Reports) -> ShareEstimate:
    """Return the unbiased estimate over Z from support counts, with errors at the shares that the counts suggest.

    Those of single shares are at r-hat cut to [0, 1], those of sums at the distribution of ``wls``. ValueError if ``n``
    is not positive, or ``counts`` does not fit the channel.
    """
    values = law.channel.unbiased(counts, n)
    part = part_of(law, values.clip(0.0, 1.0), n, partial(wls, law.channel, counts, n))
    reports = np.broadcast_to(n, values.shape)
    return ShareEstimate(values, reports, (part,), channel=law.channel, counts=counts, reports=n)


class CountsDecoder(SharesDecoder):
    """Reads support counts by the channel of a ``PureMechanism``, or of devices that keep responses of one.

    If ``simultaneous``, all intervals of a table are to cover the truth at once (Bonferroni), and else each alone.
    """

    estimators: tuple[str, ...] = OF_COUNTS

    def __init__(self, mechanism: Mechanism, pum: Pum, *, simultaneous: bool = False) -> None:
        self.mechanism = cast(PureMechanism, mechanism.bare)
        self.response = cast(PureMechanism | None, mechanism.inner)  # None if devices keep no responses
        self.channel, self.pum, self.simultaneous = self.mechanism.channel, pum, simultaneous
        if self.channel.one_symbol:
            self.estimators = OF_SYMBOLS

    def check(self, cells: Counts, n: int) -> None:
        if self.mechanism.partitions:
            require_output_counts(cells, n, self.mechanism.statistic_size)
            return
        if cells.shape != (self.channel.size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self.channel.size} symbols")
        if cells.min() < 0 or cells.max() > n:
            raise ValueError(f"a support count is outside of 0 to n = {n}")
        if self.channel.independent_bits:
            return
        if self.channel.may_support_none:
            if cells.sum() > n:
                raise ValueError(f"a report supports one symbol or none, but the counts sum to {cells.sum()}, n = {n}")
            return
        # A report that supports no sensitive symbol names another one.
        supported, named = self.channel.supported, int(cells[self.channel.q == 0].sum())
        if cells.sum() - named != (n - named) * supported:
            raise ValueError(f"a report supports {supported} symbols, but the counts sum to {cells.sum()} with n = {n}")

    def supports(self, cells: Counts) -> Counts:
        """Return the support counts over Z; they are the cells, unless a cell supports several symbols."""
        return self.mechanism.fold(cells)

    @cached_property
    def law(self) -> ChannelLaw:
        """The law of a report."""
        return law_of(self.channel, None if self.response is None else law_of(self.response.channel))

    def tags_at(self, cells: Counts, n: int) -> Pum:
        return self.pum

    def linear_of(self, supports: Counts, n: Reports) -> ShareEstimate:
        """Return the unbiased estimate over Z from the support counts of n reports, or from rows of several windows."""
        return share_estimate(self.law, supports, n)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        p_value = self.test(self.supports(cells), n)
        return {} if p_value is None else {Flag.IMPROBABLE_COUNTS: p_value}

    def test(self, supports: Counts, n: int) -> float | None:
        """Return the p-value of support counts, or None if n is too small for it; see ``fit_counts``."""
        # Imported here because SciPy takes a quarter of a second to import, and devices and simulations need none.
        from uldp.mechanisms.inference.plausibility import counts_p_value

        return counts_p_value(self.channel, supports, n)

    def draw_counts(self, r: Floats, n: int, rng: Generator) -> Counts:
        """Draw the support counts of n reports of devices whose true symbols are distributed as ``r``."""
        return draw_counts(self.channel, r, n, rng)

    def stderr(self, r: Floats, n: int) -> Floats:
        return np.sqrt(self.channel.variance(r, n))[: self.pum.size]

    @property
    def weight(self) -> float:
        return float(1 / self.channel.gain[self.channel.q > 0].min())


class PureDecoder(CountsDecoder):
    """Reads support counts over Z, and redistributes the tags of PUM over X; see ``CountsDecoder``."""

    pooling: Pooling | None = Pooling.SHARES

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> ShareEstimate:
        return self.linear_of(self.supports(cells), n).repeated(repeats)

    def received(self, cells: Counts, n: int) -> Floats:
        return np.asarray(self.supports(cells)[: self.pum.size] / n)

    def guesses(self, cells: Counts, n: int, values: int) -> Symbols:
        """See the base class: by p and q, and equally many users of each value."""
        from scipy import special  # as in ``test``

        p, q = self.channel.p[:values], self.channel.q[:values]
        supports = np.array([self.supports(each)[:values] for each in cells])
        with np.errstate(divide="ignore"):
            score = special.xlogy(supports, p / q) + special.xlogy(n - supports, (1 - p) / (1 - q))
        return np.asarray(score.argmax(axis=1))

    def explain(self, cells: Counts, n: int, position: int) -> Iterator[str]:
        channel, linear = self.channel, self.linear(cells, n)
        support = int(linear.counts[position]) / n
        p, q = float(channel.p[position]), float(channel.noise(linear.values.clip(0.0, 1.0))[position])
        yield f"support: {linear.counts[position]:,} of {n:,} reports support it, {100 * support:.4g} %"
        yield f"channel: a report supports it with p {p:.4g} if its user holds it, and with q {q:.4g} if not"
        if q:
            users = f"{1 / (p - q):.3g} users"
            yield f"noise: if nobody held it, {q * n:,.0f} reports would; each report above counts for {users}"
        else:
            yield f"noise: none; no report supports it by chance, and each that does counts for {1 / p:.3g} users"
        yield f"formula: (count / n - q) / (p - q) = ({support:.5f} - {q:.5f}) / {p - q:.5f}"

    def p_values_of_each(self, windows: Sequence[tuple[Counts, int]]) -> list[Mapping[Flag, float]]:
        from uldp.mechanisms.inference.plausibility import counts_p_values  # as in ``test``

        supports = np.array([self.supports(cells) for cells, _ in windows])
        p_values = counts_p_values(self.channel, supports, np.array([n for _, n in windows]))
        return [{} if p_value is None else {Flag.IMPROBABLE_COUNTS: p_value} for p_value in p_values]

    def forecast(self, n: int) -> Floats:
        return np.sqrt(self.channel.variance(equal_shares(self.channel.size), n))

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class. For "em", which climbs towards "mle", the errors are those of "mle"."""
        name = "mle" if estimator == "em" else estimator
        r_hat = estimate_intermediate(name, self.channel, self.draw_counts(r, n, rng), n, len(self.pum.tags))
        return self.pum.distribution(r_hat) - self.pum.distribution(r)

    @property
    def _heaviest(self) -> float:
        """The number of users for whom a report counts that supports a symbol, of the noisiest symbol."""
        return 1 / float(self.channel.gain.min())

    def heaviest(self, table: Table) -> float | None:
        return None if table.low is None else self._heaviest * self.supported_in(table)

    def supported_in(self, table: Table) -> int:
        """Return how many symbols behind an entry a report may support: its own, and background's."""
        together = not self.channel.one_symbol and table.name in (TableName.SHARE, TableName.BAND)
        return 1 + len(self.pum.tags) if together else 1

    def expected_l1(self, r: Floats, n: int, estimator: str) -> float:
        """Return the expected l1 distance of n reports, at most 2; of many symbols, without a projection."""
        if self.channel.size > LARGEST:
            return min(self.channel.expected_l1(r, n), 2.0)
        return self.errors(r, n, estimator, min(_WINDOWS, LARGEST // self.channel.size)).l1

    @property
    def _at_most(self) -> str:
        """What is before an expected l1 distance that is a bound."""
        return "at most " if self.channel.size > LARGEST else ""

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        for q in np.unique(self.channel.q)[::-1].tolist():
            of_q = self.channel.q == q
            p, noise = self.channel.p[of_q], self.channel.noise(np.where(self.channel.q > 0, 0.0, 1.0))[of_q]
            symbols = "1 symbol" if len(p) == 1 else f"{len(p):,} symbols"
            behind = f", {float(noise[0]):.6g} from behind the others" if noise[0] < q else ""
            proof = "" if q > 0 else "; a report that has one proves that its user holds it"
            yield "sensitive" if q > 0 else "others", f"{symbols}: p {float(p[0]):.6g}, q {q:.6g}{behind}{proof}"
        shares = falling_shares(self.channel.size), equal_shares(self.channel.size)
        yield "forged", forgery_text(self.channel, shares[0], n, self.mechanism.chance_support, self.test)
        yield heaviest_fact(self._heaviest, n)
        falling, equal = (self.expected_l1(r, n, estimator) for r in shares)
        shapes = f"{falling:.3g} if the shares fall as 1, 1/2, 1/3, ..., {equal:.3g} if they are equal"
        worst = f"standard error of the unbiased estimate at most {self.forecast(n).max():.3g} a symbol"
        yield "errors", f"of {estimator} at n = {n:,}: expected l1 {self._at_most}{shapes}; {worst}"

    def warnings(self, n: int, users: int, estimator: str) -> Iterator[str]:
        estimator = self.known(estimator)
        truth, guess = (shares(self.channel.size) for shares in (falling_shares, equal_shares))
        blind = float(np.abs(self.pum.distribution(guess) - self.pum.distribution(truth)).sum())

        def error(n: int) -> float:
            return self.expected_l1(truth, n, estimator)

        if not blind or error(n) <= blind / 2:
            return
        # So many suffice for the unbiased estimate, whose error falls with their root. Others need fewer.
        enough = n * (self.channel.expected_l1(truth, n) / (blind / 2)) ** 2
        while enough < _MOST_USERS and error(int(enough / _USERS_STEP)) <= blind / 2:
            enough /= _USERS_STEP
        # The errors are those of a few windows, so they need not fall from ``enough`` to the number that is named.
        while enough < _MOST_USERS and error(round(two_digits(enough * users / n) * n / users)) > blind / 2:
            enough *= _NAMED_STEP
        few = enough < _MOST_USERS
        need = f"{two_digits(enough * users / n):,} users or more" if few else "more users than there are"
        yield (
            f"the expected l1 error of {estimator} is {self._at_most}{error(n):.3g} at n = {users:,}, and that of equal"
            f" shares, a guess without reports, {blind:.3g}: take {need} in a window, fewer values, or a larger epsilon"
        )

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        linear = self.linear(cells, n, repeats)
        r_hat = estimate_intermediate(estimator, self.channel, linear.counts, n, len(self.pum.tags))
        return share_tables(self.pum, r_hat, linear, simultaneous=self.simultaneous)

    def tables_of_each(self, windows: Sequence[tuple[Counts, int]], estimator: str) -> list[tuple[Table, ...]]:
        if self.pum.tags or self.channel.q_non_sensitive is not None or len(windows) < _FEW_WINDOWS:
            return super().tables_of_each(windows, estimator)
        supports, n = np.array([self.supports(cells) for cells, _ in windows]), np.array([n for _, n in windows])
        r_hat = estimate_each(estimator, self.channel, supports, n)
        linear = self.linear_of(supports, n[:, np.newaxis])
        tables = tables_by_rows(r_hat, linear, n.tolist(), simultaneous=self.simultaneous)
        return [(table,) for table in tables]
