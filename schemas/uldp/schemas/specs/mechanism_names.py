"""The names of mechanisms and estimators in specs."""

from collections.abc import Mapping
from typing import Literal

MechanismName = Literal[
    "identity",
    "rr",
    "warner",
    "mangat",
    "urr",
    "rappor",
    "sue",
    "oue",
    "urap",
    "uoue",
    "uhr",
    "uss",
    "ubd",
    "ss",
    "olh",
    "hrr",
    "blh",
    "linear-olh",
    "pgr",
    "the",
    "she",
    "duchi",
    "block",
    "bit-flip",
    "bloom",
    "cohort-olh",
    "idue",
    "metric",
    "levels",
    "sample-one",
]


EstimatorName = Literal["auto", "empirical", "threshold", "norm-sub", "wls", "mle", "em", "ems"]


#: The mechanisms under which the epsilon of two values, or of a user, may be less than that of an estimate.
SEVERAL_EPSILONS: tuple[MechanismName, ...] = ("idue", "metric", "levels")


#: What each mechanism is called on a page.
MECHANISM_TITLES: Mapping[MechanismName, str] = {
    "identity": "identity, no obfuscation",
    "rr": "randomized response (RR)",
    "warner": "Warner’s randomized response",
    "mangat": "Mangat’s randomized response",
    "urr": "utility-optimized randomized response (uRR)",
    "rappor": "generalized RAPPOR",
    "sue": "symmetric unary encoding (SUE)",
    "oue": "optimized unary encoding (OUE)",
    "urap": "utility-optimized RAPPOR (uRAP)",
    "uoue": "utility-optimized OUE (uOUE)",
    "uhr": "utility-optimized Hadamard response (uHR)",
    "uss": "utility-optimized subset selection (uSS)",
    "ubd": "utility-optimized block designs (uBD)",
    "ss": "subset selection (SS)",
    "olh": "optimized local hashing (OLH)",
    "hrr": "Hadamard randomized response (HRR)",
    "blh": "binary local hashing (BLH)",
    "linear-olh": "optimized local hashing with linear functions",
    "pgr": "projective geometry response (PGR)",
    "the": "thresholding with histogram encoding (THE)",
    "she": "summation with histogram encoding (SHE)",
    "duchi": "Duchi et al.’s mechanism for a mean",
    "block": "the piecewise and square wave mechanism",
    "bit-flip": "a few bits of a unary encoding (ωBitFlip)",
    "bloom": "RAPPOR with Bloom filters",
    "cohort-olh": "optimized local hashing with cohorts",
    "idue": "input-discriminative unary encoding (IDUE)",
    "metric": "the exponential mechanism for a distance",
    "levels": "a mechanism with levels of privacy to choose from",
    "sample-one": "a mechanism for each attribute of the record",
}


#: The estimators for support counts, and those that also need each report to be in exactly one cell.
OF_COUNTS: tuple[EstimatorName, ...] = ("auto", "empirical", "threshold", "norm-sub", "wls")


OF_SYMBOLS: tuple[EstimatorName, ...] = (*OF_COUNTS, "mle", "em")
