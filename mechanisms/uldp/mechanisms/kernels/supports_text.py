"""The symbols that a report supports, in a line for a developer of a client."""

from uldp.schemas.arrays import Symbols

# A line names up to this many symbols.
_NAMED = 20


def named(symbols: Symbols) -> str:
    """Return the numbers of symbols in ascending order, or the first of them."""
    return ", ".join(map(str, symbols[:_NAMED].tolist())) + (", ..." if len(symbols) > _NAMED else "")


def supports_text(symbols: Symbols, size: int, what: str = "symbols") -> str:
    """Return how many of the symbols a report supports, and the first of them.

    >>> import numpy as np
    >>> supports_text(np.array([0, 3]), 5)
    'supports 2 of 5 symbols: 0, 3'
    """
    return f"supports {len(symbols):,} of {size:,} {what}{': ' if len(symbols) else ''}{named(symbols)}"
