"""Tests of reports of one string or set, by strata whose parts are all for strings: those of lengths of prefixes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from uldp.mechanisms.inference.goodness_of_fit import Check, chi_square
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.schemas.arrays import Payloads, Symbols


def all_for_strings(mechanism: Mechanism) -> bool:
    """Return whether a mechanism has parts, and each of them is for strings."""
    return bool(mechanism.parts) and all(isinstance(part.bare, StringMechanism) for part in mechanism.parts)


def strings_of_parts(strata: Mechanism, symbols: Symbols, payloads: Payloads) -> Iterator[Check]:
    """Test the drawn parts by their shares, and the payloads of each by its own string or set, (parts, l)."""
    split = list(strata.split_payloads(payloads))
    counts = np.array([len(rows) for _, rows, _ in split])
    yield chi_square("drawn parts", strata.noun, counts, strata.shares)
    for number, _, own in split:
        part = cast(StringMechanism, strata.parts[number].bare)
        if len(own):
            for check in part.string_checks(symbols[number], own):
                yield replace(check, name=f"{check.name}, of {strata.noun} {number}")
