"""Questions about published statistics, answered from kept counts: sums over time and values, changes, and reasons.

A ``Span`` is the sum of the counts of windows; ``roll_up`` makes the spans of a version by day, week or month, and
``pool_up`` those of several versions. Its tables are those of a window. ``shares_of`` gives the estimate of each
variable with its covariances, which ``sums``, ``compare`` and ``explain`` ask; ``find`` gives ``explain`` the place of
a value. ``smoothed`` asks many spans. ``groups_by``, ``version_of`` and ``counts_of`` make the counts of slices those
of a version without slices.
"""

from uldp.mechanisms.questions.answer import About, Answer, Row, rows_of, table_answers
from uldp.mechanisms.questions.compare import compare, smallest_change
from uldp.mechanisms.questions.explain import explain, find
from uldp.mechanisms.questions.periods import Period, period_of, zone_of
from uldp.mechanisms.questions.rollup import RollUp, pool_up, roll_up
from uldp.mechanisms.questions.shares import Shares, shares_of
from uldp.mechanisms.questions.slices import Group, counts_of, groups_by, version_of
from uldp.mechanisms.questions.smoothed import smoothed
from uldp.mechanisms.questions.span import Span, Version
from uldp.mechanisms.questions.sums import Groups, groups_of, quantiles, range_of, ranges, sums

__all__ = [
    "About",
    "Answer",
    "Group",
    "Groups",
    "Period",
    "RollUp",
    "Row",
    "Shares",
    "Span",
    "Version",
    "compare",
    "counts_of",
    "explain",
    "find",
    "groups_by",
    "groups_of",
    "period_of",
    "pool_up",
    "quantiles",
    "range_of",
    "ranges",
    "roll_up",
    "rows_of",
    "shares_of",
    "smallest_change",
    "smoothed",
    "sums",
    "table_answers",
    "version_of",
    "zone_of",
]
