"""The mechanisms of a record in specs: a device draws and reports one attribute, or one view, a set of attributes.

Source of tables of several attributes: Zhang, Wang, Li, He & Zhang, "CALM: Consistent Adaptive Local Marginal for
Marginal Release under Local Differential Privacy" (CCS 2018): each device reports the values of one set of attributes,
a view, that it draws.

Guarantee: one report is epsilon-LDP, for all attributes of the record together. The view is drawn whatever the values
are, and a report names it openly.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import (
    PlainSerializer,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from uldp.mechanisms.assembly import of_shares
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.least_variance import least_variance, symbols_part
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.records.decoder import Asked, MarginalsDecoder
from uldp.mechanisms.families.records.views import all_of, best_views
from uldp.mechanisms.pooling.interactions import Attributes, Interactions, subsets
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.schemas.arrays import Values
from uldp.schemas.specs.any_mechanism import PartMechanism
from uldp.schemas.specs.domains import AttributeName, VariableDomain
from uldp.schemas.specs.kinds import holds, is_listed
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.strict import OrWords
from uldp.schemas.specs.variable import Variable

#: The most views, each of which a decoder has tables and errors of.
MOST_VIEWS = 4_096
#: The most cells of the tables of all views together: so many are decoded in some seconds.
MOST_VIEW_CELLS = 1 << 20
# Larger views have as many cells as no number of users fills.
_MOST_TOGETHER = 8

_TOGETHER = {"pairs": 2, "triples": 3}
_WORDS = (*_TOGETHER, "auto")


def _word_or_sets(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """Return a word for views, or check a list; a union would have an error for each of the two."""
    if not isinstance(value, list):
        if value in _WORDS:
            return value
        raise ValueError(f"write {', '.join(_WORDS)}, or a list of views, such as [[version, crash]]")
    return check(value)


if TYPE_CHECKING:
    Views = str | list[list[str]]
else:
    #: Sets of attributes, or a word for some. This type has no word, so that the error of a wrong list is one line.
    Views = Annotated[
        list[list[AttributeName]], WrapValidator(_word_or_sets), PlainSerializer(lambda views: views), OrWords(*_WORDS)
    ]


@dataclass(frozen=True, eq=False)
class ViewEncoding(Encoding):
    """The symbol is the cell of the values in the table of a view, row-major, by encodings that draw nothing."""

    encodings: tuple[Encoding, ...]
    sizes: tuple[int, ...]

    def device_form(self) -> DeviceForm:
        encodings = [encoding.device_form() for encoding in self.encodings]
        return {"form": "view", "encodings": encodings, "sizes": list(self.sizes)}

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        symbols = np.zeros(len(columns[0].values), dtype=np.int64)
        for encoding, size, column in zip(self.encodings, self.sizes, columns, strict=True):
            symbols = symbols * size + encoding.encode([column], randomness)
        return symbols


class InViewsSpec(PrivateSpec):
    """An attribute of a record that is reported in views: it has no mechanism of its own."""

    domain_kind = "values"
    estimators = ("auto", "empirical")
    like_with_tags = "sample-one"

    def device_parameters(self) -> dict[str, Any]:
        return {}

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``: that of a view of this attribute alone, whose encoding is that of the attribute."""
        return of_shares(variable, self, RandomizedResponse)


class MarginalsSpec(PrivateSpec):
    """The mechanism of a record for tables of several of its attributes: a device reports one view, which it draws.

    Attributes:
        views: The attributes of each view; or which are chosen.
    """

    title = "tables of several attributes, pooled from views"
    literature: ClassVar[Mapping[str, str]] = {"marginals": "CALM PriView HT"}
    not_ranked = "for records"
    domain_kind = "record"
    estimators = ("auto", "empirical")

    name: Literal["marginals"]
    views: Views = "auto"

    @field_validator("views", mode="after")
    @classmethod
    def _are_sets(cls, views: str | list[list[str]]) -> str | list[list[str]]:
        if isinstance(views, str):
            return views
        if not views:
            raise ValueError("list one view or more, such as [[version, crash]]")
        for index, view in enumerate(views):
            if len(set(view)) < len(view) or not 1 <= len(view) <= _MOST_TOGETHER:
                raise ValueError(
                    f"view {index + 1} must have 1 to {_MOST_TOGETHER} attributes, each once, got {', '.join(view)}"
                )
        if len({frozenset(view) for view in views}) < len(views):
            raise ValueError("a view occurs twice; remove one")
        return views

    def of_attributes(self, record: Mapping[str, VariableDomain]) -> Mapping[str, MechanismFamily]:
        names = record.keys()
        for name, domain in record.items():
            if not is_listed(domain.kind):
                raise ValueError(
                    f"domain.record.{name}: {self.name} is for listed values, and this is {holds(domain.kind)}; give it"
                    " labels or a size, or collect it alone"
                )
        together = _TOGETHER.get(self.views, 1) if isinstance(self.views, str) else 1
        if len(names) < max(together, 2):
            raise ValueError(
                f"mechanism.views: needs {max(together, 2)} attributes or more; add some, or choose sample-one"
            )
        if not isinstance(self.views, str):
            held = {name for view in self.views for name in view}
            if others := sorted(held - {*names}):
                raise ValueError(
                    f"mechanism.views: {others[0]} is no attribute of domain.record{notes(near(others[0], names))}"
                )
            if missing := [name for name in names if name not in held]:
                raise ValueError(f"mechanism.views: no view has {missing[0]}; add one, or remove the attribute")
        keys = {"name": self.name, "epsilon": self.epsilon, "lasting_epsilon": self.lasting_epsilon}
        return dict.fromkeys(names, InViewsSpec.model_validate(keys))

    def share_of(self, attribute: str) -> float:
        return 1.0

    def record_parameters(self, variables: Mapping[str, Variable]) -> dict[str, Any]:
        names = list(variables)
        views = [[names[attribute] for attribute in view] for view in self._views(variables)]
        lasting = {} if self.lasting_epsilon is None else {"lasting_epsilon": self.lasting_epsilon}
        return {"views": views} | lasting

    @classmethod
    def record_examples(cls, sizes: Mapping[str, int], epsilon: float) -> Iterator[dict[str, Any]]:
        yield from ({"views": word} for word in _WORDS)

    def check_given(self, names: Collection[str], given: Sequence[Sequence[str]]) -> None:
        for index, (first, second) in enumerate(given):
            key = f"given.{index}"
            for name in (first, second):
                if name not in names:
                    raise ValueError(f"{key}: {quote(name)} is no attribute of domain.record{notes(near(name, names))}")
            if first == second:
                raise ValueError(f"{key}: write two attributes: [what is given, what is asked for]")
            if not isinstance(self.views, str) and not any({first, second} <= {*view} for view in self.views):
                raise ValueError(f"{key}: no view holds {first} and {second}; add views: [{first}, {second}]")
            if list(given[index]) in map(list, given[:index]):
                raise ValueError(f"{key}: occurs twice; remove one")

    def joined(
        self, variables: Mapping[str, Variable], parts: Mapping[str, Any], given: Sequence[Sequence[str]] = ()
    ) -> LdpProtocol:
        names, sizes = list(variables), [variable.size for variable in variables.values()]
        encodings = [part.encoding for part in parts.values()]
        views = self._views(variables)
        design = Interactions(sizes, views)
        first = next(iter(variables.values()))
        cells = [design.cells(view) for view in views]
        of_size = {size: symbols_part(first, self, size, least_variance(size, self.epsilon)) for size in {*cells}}
        mechanisms, decoders = zip(*(of_size[size] for size in cells), strict=True)
        named = [" x ".join(names[each] for each in view) for view in views]
        strata = strata_of(mechanisms, noun="view", names=named)
        sources = [
            StratumSource(
                ViewEncoding(tuple(encodings[each] for each in view), tuple(sizes[each] for each in view)), view
            )
            for view in views
        ]
        asked = Asked(
            tuple(names), self._tables(views), tuple((names.index(one), names.index(two)) for one, two in given)
        )
        decoder = MarginalsDecoder(sizes, views, strata, decoders, asked)
        return LdpProtocol(StrataEncoding(sources, strata), strata, decoder)

    def _views(self, variables: Mapping[str, Variable]) -> list[Attributes]:
        """Return the attributes of each view by their numbers; ValueError if views or their tables are too many."""
        names, sizes = list(variables), tuple(variable.size for variable in variables.values())
        if not isinstance(self.views, str):
            views = [tuple(sorted(map(names.index, view))) for view in self.views]
        else:
            views = all_of(len(sizes), _TOGETHER.get(self.views, 2))
        if len(views) > MOST_VIEWS:
            raise ValueError(f"views: there are {len(views):,}, and {MOST_VIEWS:,} are the most; list those you need")
        if self.views == "auto":
            views = list(best_views(sizes, self.epsilon, MOST_VIEW_CELLS))
        design = Interactions(sizes, [()])
        if (cells := sum(map(design.cells, views))) > MOST_VIEW_CELLS:
            largest = " x ".join(names[each] for each in max(views, key=design.cells))
            raise ValueError(
                f"views: their tables have {cells:,} cells, and {MOST_VIEW_CELLS:,} are the most; that of {largest} is"
                " the largest: merge values, or list fewer views"
            )
        return views

    def _tables(self, views: Sequence[Attributes]) -> tuple[Attributes, ...]:
        """Return the attributes of the published tables: of each one, of each pair in a view, and of each view."""
        held = {each for view in views for each in subsets(view) if len(each) in (1, 2, len(view))}
        return tuple(sorted(held, key=lambda table: (len(table), table)))


class SampleOneSpec(PrivateSpec):
    """The mechanism of a record: a device draws one attribute and reports it with the mechanism of this attribute.

    Attributes:
        of: The mechanism of each attribute. All have the budgets of the record, because a device reports one of them:
            with ``lasting_epsilon``, always the same one.
    """

    title = "a mechanism for each attribute of the record"
    literature: ClassVar = {"sample-one": "Harmony RS+FD RS+RFD"}
    not_ranked = "for records"
    domain_kind = "record"
    estimators = ("auto", "empirical")

    name: Literal["sample-one"]
    of: dict[AttributeName, PartMechanism]

    @field_validator("of", mode="before")
    @classmethod
    def _with_budget(cls, of: object, info: ValidationInfo) -> object:
        if not isinstance(of, dict):
            return of
        # If epsilon is wrong, it is missing here, and the error about it is enough.
        epsilon, lasting = info.data.get("epsilon", 1.0), info.data.get("lasting_epsilon")
        budgets = {"epsilon": epsilon} if lasting is None else {"epsilon": epsilon, "lasting_epsilon": lasting}
        parts = {}
        for attribute, part in of.items():
            if isinstance(part, dict):
                if part.get("epsilon", epsilon) != epsilon:
                    raise ValueError(f"{quote(attribute)} has the epsilon of sample-one; remove its own epsilon")
                if part.get("lasting_epsilon", lasting) != lasting:
                    raise ValueError(f"{quote(attribute)} has the lasting_epsilon of sample-one; move its own there")
                part = {**part, **budgets}
            parts[attribute] = part
        return parts

    @model_validator(mode="after")
    def _shares_are_a_whole(self) -> "SampleOneSpec":
        shares = [part.share for part in self.of.values()]
        given = [share for share in shares if share is not None]
        if given and len(given) < len(shares):
            missing = next(attribute for attribute, part in self.of.items() if part.share is None)
            raise ValueError(f"{missing} has no share; give each attribute a share, or none for equal shares")
        if given and abs(math.fsum(given) - 1) > 1e-9:
            raise ValueError(f"the shares must sum to 1, got {math.fsum(given):.10g}")
        return self

    @classmethod
    def record_examples(cls, sizes: Mapping[str, int], epsilon: float) -> Iterator[dict[str, Any]]:
        if min(sizes.values()) > 1:
            yield {"of": {name: {"name": least_variance(size, epsilon)} for name, size in sizes.items()}}

    @property
    def parts(self) -> Mapping[str, MechanismFamily]:
        return self.of

    def joined(
        self, variables: Mapping[str, Variable], parts: Mapping[str, Any], given: Sequence[Sequence[str]] = ()
    ) -> LdpProtocol:
        shares = [each.share for each in variables.values()]
        strata = strata_of([part.mechanism for part in parts.values()], shares, names=list(parts))
        sources = [StratumSource(part.encoding, (number,)) for number, part in enumerate(parts.values())]
        decoder = StrataDecoder(list(parts), [part.decoder for part in parts.values()], strata)
        return LdpProtocol(StrataEncoding(sources, strata), strata, decoder)
