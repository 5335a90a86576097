"""The mechanisms that an error names, as their families say, so that a new one changes no test."""

from uldp.schemas.specs.kinds import RECORD
from uldp.schemas.specs.mechanism_family import names_where

TAKE_TAGS = names_where(lambda family: family.takes_tags)
ANSWER_ZONES = names_where(lambda family: family.answers_zones)
FOR_RECORDS = names_where(lambda family: family.domain_kind == RECORD)


def takers(key: str) -> str:
    """The mechanisms with this parameter."""
    return names_where(lambda family: key in family.model_fields)
