"""The mechanism of a record in specs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.families.least_variance import least_variance
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import strata_of
from uldp.schemas.specs.any_mechanism import PartMechanism
from uldp.schemas.specs.domains import AttributeName
from uldp.schemas.specs.mechanism_family import MechanismFamily, PrivateSpec
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.variable import Variable


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
