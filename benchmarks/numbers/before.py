"""Errors of estimators as they were, of the same draws as those of this folder: later ones are held against them."""

import json
from functools import cache
from pathlib import Path

#: By block: the error in each setting, by its position, with the ``WINDOWS`` of its module. That of ``auto`` is of
#: empirical Bayes, and that of ``ordered`` of the shares nearest to what all levels of a tree report.
_ERRORS = Path(__file__).with_name("before.json")


@cache
def before(block: str) -> dict[str, float]:
    """Return the errors of a block."""
    found: dict[str, dict[str, float]] = json.loads(_ERRORS.read_text(encoding="utf-8"))
    return found[block]
