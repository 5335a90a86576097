"""A published table: what an estimate says, as arrays with their errors, whatever the mechanism and the domain."""

from dataclasses import dataclass, field
from enum import StrEnum

from uldp.schemas.arrays import Floats

#: The probability with which published intervals cover the truth.
INTERVAL_LEVEL = 0.95


#: The ends of intervals, by the names of their fields: those of honest reports, and those that allow for forgers.
ENDS = ("low", "high", "low_forged", "high_forged")
#: The arrays that a table may lack.
OPTIONAL = ("unbiased", *ENDS)
#: All arrays of a table.
ARRAYS = ("values", "stderr", *OPTIONAL)


class TableName(StrEnum):
    """The quantity that a table holds. Names are stable, because jobs write them to disk."""

    #: The share of users who hold each value.
    SHARE = "share"
    #: The share of users who hold each value and do not hide it; only with tags.
    VISIBLE = "visible"
    #: The share of users who would hold each value if all hidden users held it; only with tags. The intervals go from
    #: the least to the most that may hold the value, wherever the hidden users are.
    BAND = "band"
    #: The share of users who hide their value behind each tag.
    HIDDEN = "hidden"
    #: The share of users who hide their value in each zone of a tag; only of tags with zones. Keys are ``tag/zone``.
    ZONE = "zone"
    #: The largest l1 error of the shares that wrong background knowledge of the tags can cause.
    BOUND = "bound"
    #: The mean of a number, or of the numbers that users hold with each key that has a significant share.
    MEAN = "mean"
    #: The mean number of items that users report, of sets.
    MEAN_SIZE = "mean_size"
    #: The share of users with each number of items, of sets; only of specs with ``sizes``.
    SIZE = "size"
    #: The share of users who rank a candidate above another, as a matrix: row above column. The diagonal is 0.
    BEATS = "beats"
    #: The mean Borda score of each candidate: how many others a user ranks below it.
    SCORE = "score"
    #: The share of the values of one attribute among the users with each value of another, which is that of the rows.
    GIVEN = "given"
    #: For each pair of attributes, the probability of so large a dependence if they are independent.
    INDEPENDENCE = "independence"
    #: Quantiles of a number; the keys are the levels.
    QUANTILE = "quantile"
    #: The share of users in each range that a spec asks for; ranges may overlap.
    RANGE = "range"
    #: The share of users below each edge of some bins, or with a value up to each of some in the order of the domain.
    BELOW = "below"
    #: The share of users who hold none of the candidates, of strings.
    UNEXPLAINED = "unexplained"
    #: For each candidate or key, the probability of so large an estimate if nobody holds it.
    P_VALUE = "p_value"
    #: 1 for each candidate or key whose estimate is significant among all of them, else 0.
    FOUND = "found"


#: The tables that are no shares, so that their entries may be above 1.
NUMBERS = (TableName.MEAN, TableName.MEAN_SIZE, TableName.QUANTILE, TableName.SCORE)


class Basis(StrEnum):
    """The method behind the intervals of a table."""

    EXACT = "exact"
    #: Score intervals by the variance and the skewness of the estimate.
    SCORE = "score"
    #: The estimate and some standard errors: of the bins of a block, and of results that older jobs wrote.
    NORMAL = "normal"
    #: The intervals hold wherever the users behind tags are, because it is not known how good a background is.
    ANY_BACKGROUND = "any_background"
    #: The table has no intervals.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Table:
    """One published array.

    Attributes:
        name: The quantity.
        of: The attributes of a record that the table is about, and then its slice, as ``os=ios``; () if the collection
            has one variable, and the table is about all users.
        shape: The shape of the quantity: (|X|,) for shares, (1,) for a number. The arrays are flat, in row-major order.
        keys: A label for each entry, if the entries are not the values of the spec's domain; else None.
        values: Flat: the estimates.
        stderr: Flat: the standard errors of ``unbiased``; of a quantity that has no unbiased estimate, of ``values``.
        low: Flat: lower ends of intervals at ``level``; None if ``basis`` is none.
        high: Flat: upper ends.
        low_forged: Flat: lower ends of intervals that hold also if the share ``Estimate.assume_forgers`` of the reports
            is forged; None if no forgers are assumed, or their weight is not known.
        high_forged: Flat: upper ends.
        level: The probability with which the intervals cover the truth.
        n: Number of counted reports behind the table.
        whole: Whether the entries are the shares of one whole, so that they sum to about 1.
        basis: The method behind the intervals.
        simultaneous: Whether all intervals together cover the truth with probability ``level``; otherwise each alone.
        unbiased: Flat: the unbiased estimates, which may be averaged, weighted by n; None if the quantity has none.
    """

    name: TableName
    values: Floats = field(hash=False)
    stderr: Floats = field(hash=False)
    n: int
    of: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    keys: tuple[str, ...] | None = None
    low: Floats | None = field(default=None, hash=False)
    high: Floats | None = field(default=None, hash=False)
    low_forged: Floats | None = field(default=None, hash=False)
    high_forged: Floats | None = field(default=None, hash=False)
    level: float = INTERVAL_LEVEL
    whole: bool = False
    basis: Basis = Basis.NONE
    simultaneous: bool = False
    unbiased: Floats | None = field(default=None, hash=False)

    @property
    def arrays(self) -> dict[str, Floats]:
        """The arrays that the table has, by the names of their fields."""
        return {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}
