"""Mechanisms for so many symbols of which all are protected: those of the least variance."""

import math
from dataclasses import replace

import numpy as np

from uldp.mechanisms.catalog import build_variable
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.families.subset_selection.randomizer import best_chosen
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.specs.kinds import ListedValues
from uldp.schemas.specs.mechanism_family import PrivateSpec, family
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable

# Sets of more symbols take long payloads, and have some percent less variance than projective geometry at the most.
_MOST_IN_SETS = 256


def of_symbols(size: int, epsilon: float) -> str:
    """Return the best mechanism of symbols: below about 3E + 2 of them, rr has less variance than pgr."""
    return "rr" if size < 3 * math.exp(epsilon) + 2 else "pgr"


def least_variance(size: int, epsilon: float) -> str:
    """Return the best mechanism: subset selection for few symbols, which is ``rr`` if its sets have one member."""
    if size > _MOST_IN_SETS:
        return of_symbols(size, epsilon)
    return "ss" if best_chosen(size, epsilon) > 1 else "rr"


def symbols_part(variable: Variable, spec: PrivateSpec, size: int, name: str) -> tuple[Mechanism, PureDecoder]:
    """Return a mechanism, with the budgets of ``spec``, for so many symbols of a variable, and its decoder."""
    keys = {"name": name, "epsilon": spec.epsilon, "lasting_epsilon": spec.lasting_epsilon}
    protocol = build_variable(
        replace(
            variable,
            size=size,
            names=None,
            kind=ListedValues(Values(size, None)),
            mechanism=family(name).model_validate(keys),
            sensitive_mask=np.ones(size, dtype=np.bool_),
            background=np.zeros((0, size)),
        )
    )
    assert isinstance(protocol.decoder, PureDecoder)
    return protocol.mechanism, protocol.decoder
