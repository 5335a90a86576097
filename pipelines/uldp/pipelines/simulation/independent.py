"""Users who hold each item with a share of its own, independently of others: many items have no joint table.

The file is a table of ``item,share``, or of keys with numbers ``key,value,share``. ``USERS`` users stand for all: each
item is held by as many of them as its share says, chosen at random, so that the shares are exact to 1/(2 ``USERS``).
"""

import numpy as np

from uldp.schemas.specs.kinds import Kind, Value
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.tables import Table

#: The number of users from whom a simulation draws.
USERS = 1 << 16
# The choice of the users who hold an item; another seed would give another truth of the same shares.
_SEED = 5


def independent_users(table: Table, kind: Kind) -> list[Value]:
    """Return what each of ``USERS`` users holds, by a table of ``kind.alone``; ValueError at an invalid line."""
    rng, held = np.random.default_rng(_SEED), [list[Value]() for _ in range(USERS)]
    seen: set[Value] = set()
    for item, share in table.each(lambda row: _parsed(row, kind, seen)):
        for user in rng.choice(USERS, round(share * USERS), replace=False, shuffle=False).tolist():
            held[user].append(item)
    return [tuple(sorted(items, key=_index)) for items in held]


def _parsed(row: list[str], kind: Kind, seen: set[Value]) -> tuple[Value, float]:
    *texts, share_text = row
    found = kind.read("=".join(texts))
    if not (isinstance(found, tuple) and len(found) == 1):
        raise ValueError(f"write one {kind.alone[0]} in a row")
    try:
        share = float(share_text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"share {quote(share_text)} must be a number from 0 to 1")
    (item,) = found
    index = _index(item)
    if index in seen:
        raise ValueError(f"the {kind.alone[0]} is there twice; remove one row")
    seen.add(index)
    return item, share


def _index(item: Value) -> int | str:
    """Return the index of an item, a string, or the index of the key of a pair."""
    first = item[0] if isinstance(item, tuple) else item
    assert isinstance(first, int | str)
    return first
