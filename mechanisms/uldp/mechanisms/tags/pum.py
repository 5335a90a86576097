"""The Personalized ULDP Mechanism (PUM): each user hides personally sensitive values behind semantic tags.

A device maps its user's own sensitive values to the bot of their tag (f_pre), and perturbs the result with the
mechanism that is common to all users, over Z = X and then the bots. The collector estimates r over Z as without tags,
and then redistributes the mass of the bots over X.

Source: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 5. Guarantee of one report: (X_S and the user's own sensitive values, Y_P, epsilon)-ULDP
(Proposition 11). The set of the user's own sensitive values stays secret as long as f_pre stays secret, so f_pre must
never leave the device. But a report in Y_I names a value, and so shows that this value is not in the set (section 5.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, cast

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Floats, Mask, Values
from uldp.schemas.specs.variable import Variable


def preprocess(values: Values, tags: Values, size: int) -> Values:
    """Map values to Z on the device: f_pre, equation (20); ``tags`` has a tag each, or -1; all of shape (n,)."""
    return np.where(tags >= 0, size + tags, values)


@dataclass(frozen=True, eq=False)
class Pum(Encoding):
    """PUM as an encoding, and its inverse at the collector; without tags, Z = X and p-hat is r-hat.

    What follows from an estimate of r takes ``r_hat``, shape (|Z|,), which is any estimate, or ``linear``, the unbiased
    one, and has shape (|X|,) unless it says otherwise. A ValueError says that the estimate does not fit Z.

    Background knowledge is never exact. ``background_variance`` says how uncertain it is where its strength is known;
    ``most`` and ``bound`` limit the error from wrong background knowledge, whatever it is. ``pum_intervals`` has the
    intervals of all these.

    Attributes:
        sensitive: Shape (|X|,): X_S, the values that are sensitive for all users.
        tags: A name for each of the kappa bots. The bot of tag k is symbol |X| + k of Z.
        background: Shape (kappa, |X|): pi-hat_k, the distribution of values behind tag k. A row of NaN means that the
            tag has no background knowledge.
        strength: Shape (kappa,): the number of draws from the distribution of values behind the tag that its
            background is worth; NaN if unknown, and infinity if the background is exact.
        reach: Shape (kappa, |X|): whether users behind each tag may hold each value; None if they may hold any. The bot
            of a zone reaches the values of the zone.
    """

    sensitive: Mask
    tags: tuple[str, ...]
    background: Floats
    strength: Floats
    reach: Mask | None = None

    def __post_init__(self) -> None:
        if self.background.shape != (len(self.tags), self.size):
            raise ValueError(
                f"background has shape {self.background.shape}, but there are {len(self.tags)} tags"
                f" and {self.size} values"
            )
        if self.strength.shape != (len(self.tags),):
            raise ValueError(f"strength has shape {self.strength.shape}, but there are {len(self.tags)} tags")
        if (self.strength <= 0).any():
            raise ValueError("the strength of a background must be above 0, or NaN if it is unknown")
        if (self._unknown & ~np.isnan(self.strength)).any():
            raise ValueError("a tag without background has no strength")
        known = self.background[~self._unknown]
        if not ((known >= 0).all() and np.allclose(known.sum(axis=1), 1)):
            raise ValueError("each background must be a distribution over the values, or NaN throughout")
        if self._unknown.any() and self.sensitive.all():
            names = ", ".join(np.array(self.tags)[self._unknown])
            raise ValueError(f"tags without background ({names}) need non-sensitive values; give them a background")

    @classmethod
    def of(cls, variable: Variable) -> Self:
        """Build the encoding of a variable from its sensitive values and tags."""
        names = tuple(tag.name for tag in variable.tags)
        return cls(variable.sensitive_mask, names, variable.background, variable.strength)

    @property
    def size(self) -> int:
        """|X|."""
        return len(self.sensitive)

    @cached_property
    def _unknown(self) -> Mask:
        """Shape (kappa,): whether each tag lacks background knowledge."""
        return np.asarray(np.isnan(self.background).all(axis=1))

    def device_form(self) -> DeviceForm:
        return {"form": "value", "size": self.size, "tags": len(self.tags)}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        ((held, tags),) = columns
        values = cast(Values, held)
        if len(values) and not (values.min() >= 0 and values.max() < self.size):
            raise ValueError(f"a value is outside of the domain 0 to {self.size - 1}")
        if len(tags) and not (tags.min() >= -1 and tags.max() < len(self.tags)):
            raise ValueError("a hidden value has a tag that is not in the spec")
        return preprocess(values, tags, self.size)

    def bot_distributions(self, r_hat: Floats) -> Floats:
        """Return pi-hat, the assumed distribution of the users behind each tag, shape (kappa, |X|).

        For a tag without background, pi-hat_k(x) is proportional to r-hat(x) over X_N (section 5.3). If r-hat has no
        positive sum on X_N, it is the uniform distribution over X_N.
        """
        values, _ = self._split(r_hat)
        return np.where(self._unknown[:, np.newaxis], self._share(values), self.background)

    def _share(self, values: Floats) -> Floats:
        """Share 1 over X_N in proportion to ``values``, or equally if they have no positive sum there."""
        weights = np.where(self.sensitive, 0.0, values)
        if weights.sum() <= 0:
            weights = (~self.sensitive).astype(np.float64)
        # If X_N is empty, the weights are all 0, and every tag has background knowledge.
        return weights if self.sensitive.all() else weights / weights.sum()

    def distribution(self, r_hat: Floats) -> Floats:
        """Return p-hat(x) = r-hat(x) + sum_k r-hat(bot_k) pi-hat_k(x), equation (22).

        The result is on the probability simplex if ``r_hat`` is. Tags without background scale r-hat over X_N up to
        the mass that the other symbols leave.
        """
        values, bots = self._split(r_hat)
        return values + bots @ self.bot_distributions(r_hat)

    def stderr(self, linear: Estimate) -> Floats:
        """Return the standard errors of p-hat from the unbiased estimate, with users' values drawn i.i.d.

        If p-hat_x is r-hat_x, its standard error is that of r-hat_x; otherwise the covariances and the uncertainty of
        the background matter too. A symbol with q = 0 that no report supports adds nothing, though its r need not be 0;
        its interval bounds how large it may be.
        """
        # A symbol with too few supporting reports is noisy too, so variances are those at r-hat, cut to [0, 1].
        # Rounding, or an r-hat far outside the simplex, can make one negative.
        r_hat = linear.values.clip(0.0, 1.0)
        return np.sqrt(np.maximum(self._variance_of_draws(linear, r_hat), 0.0) + self.background_variance(r_hat))

    def background_variance(self, r_hat: Floats, members: Floats | None = None) -> Floats:
        """Return the variance of p-hat, or of its sums, that comes from backgrounds of known strength.

        If m draws from pi_k gave pi-hat_k, Jeffreys' prior Beta(1/2, 1/2) leaves pi_k(x) with the variance
        q (1 - q) / (m + 2), where q = (m pi-hat_k(x) + 1/2) / (m + 1). By the delta method, it enters with the square
        of the mass of the tag. The half draw matters: without it, a value that a background does not name would be
        taken as certainly not hidden.

        A background without strength adds nothing here, as if it were exact. The sums are those of groups: ``members``,
        shape (|X|, j), are 1 where a value is in a group.
        """
        _, bots = self._split(r_hat)
        known = ~np.isnan(self.strength)
        more = self.strength[known, np.newaxis] + 1
        pi, reached = self.background[known], self.reached
        if members is not None:
            pi, reached = pi @ members, self.reached_in(members)
        q = pi + (0.5 - pi) / more
        spread = q * (1 - q) / (more + 1) * reached[known]
        return np.asarray(np.maximum(bots[known], 0.0) ** 2 @ spread)

    def _variance_of_draws(self, linear: Estimate, r_hat: Floats) -> Floats:
        """Return Var[p-hat_x] at ``r_hat``, if the backgrounds are exact.

        Let U be the mass of the tags without background, and R the mass of X_N. By the delta method, the gradient of
        p-hat_x is pi-hat_k(x) at bot k, own_x at x, and -h_x at all other x' in X_N. On X_N, h_x = U r_x / R^2 and
        own_x = 1 + U/R - h_x; on X_S, h_x = 0 and own_x = 1. So it is own_x + h_x at x, and -h_x at the sum of X_N.
        """
        if not self.tags:
            return linear.variance
        values, bots = self._split(r_hat)
        pi_hat = self.bot_distributions(r_hat)
        free = ~self.sensitive
        total = values[free].sum()
        ratio = bots[self._unknown].sum() / total if total > 0 else 0.0
        h = ratio * self._share(values)
        own = np.where(free, 1 + ratio, 1.0)
        return self._variance_of_sums(linear, own, np.vstack([pi_hat, -h]))

    def _variance_of_sums(self, linear: Estimate, own: Floats, weights: Floats) -> Floats:
        """Return Var[own_x r-hat(x) + sum_k weights_kx r-hat(k)] for each x, where k are the bots, and last all of X_N.

        Weights have the shape (kappa + 1, |X|) or (kappa + 1, 1); the last row is that of the sum over X_N.
        """
        of_values, of_bots = self._split(linear.variance)
        sums = np.zeros((len(linear.values), len(self.tags) + 1))
        sums[self.size :, :-1] = np.eye(len(self.tags))
        sums[: self.size, -1] = ~self.sensitive
        products = linear.times(sums)
        among = sums.T @ products
        # The diagonal as ``variance`` gives it, so that it is that of other tables.
        among[np.arange(len(of_bots)), np.arange(len(of_bots))] = of_bots
        across = products[: self.size] * weights.T
        return np.asarray(own**2 * of_values + 2 * own * across.sum(axis=1) + (among @ weights * weights).sum(axis=0))

    def visible(self, r_hat: Floats) -> Floats:
        """Return r-hat over X, the share of users who hold each value and do not hide it."""
        values, _ = self._split(r_hat)
        return values

    @cached_property
    def reached(self) -> Floats:
        """Shape (kappa, |X|): 1 where a bot reaches a value, else 0; (kappa, 1) if all bots reach all values."""
        return np.ones((len(self.tags), 1)) if self.reach is None else self.reach.astype(np.float64)

    def reached_in(self, members: Floats) -> Floats:
        """Return 1 where a bot reaches a value of a group, else 0; (|X|, j) becomes (kappa, j)."""
        reached = np.broadcast_to(self.reached, self.background.shape) @ members
        return (reached > 0).astype(np.float64)

    def most(self, r_hat: Floats) -> Floats:
        """Return r-hat(x) + sum_k max(r-hat(bot_k), 0), the share of each value if all hidden users held it."""
        values, bots = self._split(r_hat)
        return values + np.maximum(bots, 0.0) @ self.reached

    def most_stderr(self, linear: Estimate) -> Floats:
        """Return the standard errors of r-hat(x) + sum_k r-hat(bot_k); see ``stderr``."""
        weights = np.vstack([self.reached, np.zeros((1, self.reached.shape[1]))])
        variance = self._variance_of_sums(linear, np.ones(self.size), weights)
        return np.sqrt(np.maximum(variance, 0.0))

    def bound(self, r_hat: Floats) -> float:
        """Return 2 sum_k max(r-hat(bot_k), 0), the largest l1 error of p-hat from wrong background (Theorem 1).

        The paper has no maximum, because it assumes that r-hat is on the simplex. A negative r-hat(bot_k) adds
        -|r-hat(bot_k)| pi-hat_k to p-hat instead of r(bot_k) pi_k, and the l1 distance of these vectors,
        |r-hat(bot_k)| + r(bot_k), is in l1(r-hat, r) already. The background of a bot that reaches one value is never
        wrong.
        """
        _, bots = self._split(r_hat)
        several = True if self.reach is None else self.reach.sum(axis=1) > 1
        return 2 * float(np.maximum(bots, 0.0).sum(where=several))

    def _split(self, vector: Floats) -> tuple[Floats, Floats]:
        """Split a vector over Z, or the rows of a matrix, into the parts over X and over the bots."""
        if vector.shape[-1] != self.size + len(self.tags):
            raise ValueError(
                f"the vector has shape {vector.shape}, but there are {self.size} values and {len(self.tags)} tags"
            )
        return vector[..., : self.size], vector[..., self.size :]
