"""Names of mechanisms in the literature, and what a spec says in place of them; docs/mechanisms.md has the reasons."""

from collections.abc import Collection, Mapping
from functools import cache

from uldp.schemas.specs.families import registered

#: Names of systems with nothing in place of them.
LEFT_OUT = (
    "BLENDER Pufferfish PrivUnit Calibrate THRESH LoPub LoCop LDPart SAFARI SVR LATENT FedSel FedLDA k-means bandits"
    " graphs HR SEM CSEM"
)

#: How a keyboard without Greek letters, or a page that names them, writes these.
_SPELLINGS = {"omega": "w", "ω": "w", "α": "alpha", "ε": "epsilon"}


def folded(name: str) -> str:
    """Return a name without case and hyphens, and in Latin letters.

    >>> folded("ω-SM"), folded("Omega_SM"), folded("w-sm")
    ('wsm', 'wsm', 'wsm')
    """
    name = name.casefold()
    for spelling, plain in _SPELLINGS.items():
        name = name.replace(spelling, plain)
    return "".join(character for character in name if character.isalnum())


@cache
def in_place() -> Mapping[str, str]:
    """Return what to write, which begins with the name of a mechanism, and the names that it stands for."""
    models = dict.fromkeys(point.load() for point in registered().values())
    return {write: names for model in models for write, names in model.literature.items()}


_NOT_HERE = {folded(name) for name in LEFT_OUT.split()}


def in_place_of(name: str, known: Collection[str]) -> str:
    """Return what to write in place of a name of the literature, to follow this name; "" if it is none.

    Args:
        name: The name.
        known: The mechanisms that can be there.

    >>> in_place_of("S_Hist", ["rr", "hrr"]), in_place_of("S-Hist", ["rr"]), in_place_of("LoPub", ["rr"])
    ('has another name here: write hrr', '', 'is not here; docs/mechanisms.md says why')
    """
    write = next((write for write, names in in_place().items() if folded(name) in map(folded, names.split())), "")
    if write and write.replace(",", "").split()[0] in known:
        return f"has another name here: write {write}"
    return "is not here; docs/mechanisms.md says why" if folded(name) in _NOT_HERE else ""
