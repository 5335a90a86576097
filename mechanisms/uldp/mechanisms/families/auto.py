"""Parameters of mechanisms for which a spec may say auto: the number that is best for its domain."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator

from uldp.schemas.specs.mechanism_family import Theta
from uldp.schemas.specs.strict import OrWords


def _no_other_word(value: Any, kind: str) -> Any:
    """Return a value that is no word but auto; a number in quotes has an error of its own."""
    if isinstance(value, str) and value.isalpha() and value != "auto":
        raise ValueError(f"must be {kind}, or auto")
    return value


def _or_auto(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Keep the word auto, and check anything else."""
    return value if value == "auto" else check(_no_other_word(value, "a number"))


def _size(value: Any) -> Any:
    return None if value == "auto" else _no_other_word(value, "a whole number")


#: The number of sensitive symbols in a set or block; None, written auto, is the best one for the domain.
BlockSize = Annotated[int | None, Field(ge=1), BeforeValidator(_size), OrWords("auto")]
#: A theta, or the word auto. The type has no word, so that the error of a bad number is one line; pydantic would warn
#: where it writes the word.
AutoTheta = Annotated[Theta | None, WrapValidator(_or_auto), PlainSerializer(lambda theta: theta), OrWords("auto")]
