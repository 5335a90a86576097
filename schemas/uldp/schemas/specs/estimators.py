"""The names of estimators in specs."""

from typing import Literal

EstimatorName = Literal["auto", "empirical", "threshold", "norm-sub", "wls", "mle", "em", "ems"]

#: The estimators for support counts, and those that also need each report to be in exactly one cell.
OF_COUNTS: tuple[EstimatorName, ...] = ("auto", "empirical", "threshold", "norm-sub", "wls")
OF_SYMBOLS: tuple[EstimatorName, ...] = (*OF_COUNTS, "mle", "em")
