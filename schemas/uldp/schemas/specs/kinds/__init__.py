"""Kinds of domain, a module each: their objects answer what others would ask "which kind?" for; see ``Kind``.

Another package names its kinds as entry points of the group ``uldp.kinds``, each under its key of ``domain`` in a spec.
Such a kind is imported when a spec first has this key.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint

from uldp.schemas.extras import with_packages
from uldp.schemas.specs.kinds.kind import Column as Column
from uldp.schemas.specs.kinds.kind import Ends as Ends
from uldp.schemas.specs.kinds.kind import Kind as Kind
from uldp.schemas.specs.kinds.kind import Range as Range
from uldp.schemas.specs.kinds.kind import Value as Value
from uldp.schemas.specs.kinds.number import Number as Number
from uldp.schemas.specs.kinds.pairs import Pairs as Pairs
from uldp.schemas.specs.kinds.ranking import Ranking as Ranking
from uldp.schemas.specs.kinds.sets import Sets as Sets
from uldp.schemas.specs.kinds.string_sets import StringSets as StringSets
from uldp.schemas.specs.kinds.strings import Strings as Strings
from uldp.schemas.specs.kinds.values import ListedValues as ListedValues

#: The group of entry points.
GROUP = "uldp.kinds"
#: The project's own kinds of one variable by name. All but values and sets of strings are keys of ``domain`` in a spec.
OWN: Mapping[str, type[Kind]] = {
    kind.name: kind for kind in (ListedValues, Number, Strings, Sets, StringSets, Pairs, Ranking)
}
#: The ``domain_kind`` of a mechanism for several variables.
RECORD = "record"


class _Kinds(Mapping[str, type[Kind]]):
    """All kinds of one variable by name."""

    def __getitem__(self, name: str) -> type[Kind]:
        if name in OWN:
            return OWN[name]
        found = _registered()[name].load()
        if not (isinstance(found, type) and issubclass(found, Kind) and found.name == name):
            raise TypeError(f"{_registered()[name].value} is no Kind of the name {name}; see docs/own_mechanism.md")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_registered())

    def __len__(self) -> int:
        return len(_registered())


#: The kinds of one variable by name: the project's own, and those of packages.
KINDS: Mapping[str, type[Kind]] = _Kinds()


@cache
def _registered() -> Mapping[str, EntryPoint]:
    own = {name: f"{kind.__module__}:{kind.__name__}" for name, kind in OWN.items()}
    return with_packages(GROUP, own)


def of_packages() -> list[str]:
    """Return the names of the kinds that packages bring."""
    return [name for name in KINDS if name not in OWN]


def holds(name: str) -> str:
    """Return what a device holds of a domain of this kind, or of a record, in the words of an error."""
    return KINDS[name].holds if name in KINDS else f"a {name}"


def is_listed(name: str) -> bool:
    """Return whether a domain of this kind lists its values; that of a record has a list for each attribute."""
    return name in KINDS and KINDS[name].listed
