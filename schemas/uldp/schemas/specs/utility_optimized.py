"""The mechanisms that protect only sensitive values, as models of specs."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator

from uldp.schemas.specs.designs import MOST_POINTS, best_design, best_subset, best_theta, design_of
from uldp.schemas.specs.mechanism_family import PrivateSpec, Theta
from uldp.schemas.specs.mechanism_names import OF_SYMBOLS


class MangatSpec(PrivateSpec):
    """Mangat's randomized response for two values, one of them sensitive."""

    utility_optimized = True
    estimators = OF_SYMBOLS

    name: Literal["mangat"]


class UtilityOptimizedResponseSpec(PrivateSpec):
    """Utility-optimized randomized response."""

    utility_optimized = True
    takes_tags = True
    estimators = OF_SYMBOLS

    name: Literal["urr"]


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
BlockSize = Annotated[int | None, Field(ge=1), BeforeValidator(_size)]


class UrapSpec(PrivateSpec):
    """Utility-optimized RAPPOR; ``theta`` is by default that of sue, and auto is the best one for the domain."""

    utility_optimized = True
    takes_tags = True

    name: Literal["urap"]
    # The type has no word, so that the error of a bad number is one line; pydantic would warn where it writes the word.
    theta: Annotated[Theta | None, WrapValidator(_or_auto), PlainSerializer(lambda theta: theta)] = None

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism with the number for which auto stands; see ``uldp.schemas.specs.designs``."""
        return self.model_copy(
            update={"theta": best_theta(self.epsilon, sensitive, size)} if isinstance(self.theta, str) else {}
        )


class UtilityOptimizedSpec(PrivateSpec):
    """Utility-optimized optimized unary encoding, and Hadamard response, which have no other parameter."""

    utility_optimized = True
    takes_tags = True

    name: Literal["uoue", "uhr"]


class UtilityOptimizedSubsetSpec(PrivateSpec):
    """Utility-optimized subset selection: a report is a set of ``w`` sensitive values, or a value that is not."""

    utility_optimized = True
    takes_tags = True

    name: Literal["uss"]
    w: BlockSize = None

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism with the number for which auto stands.

        Raises:
            ValueError: if no set of the sensitive symbols has ``w`` members.
        """
        if self.w is None:
            return self.model_copy(update={"w": best_subset(self.epsilon, sensitive, size)})
        most = max(sensitive - 1, 1)
        if self.w > most:
            raise ValueError(
                f"w: a set of {sensitive:,} sensitive symbols (values and tags) has 1 to {most:,} of them; write"
                f" {most}, or auto"
            )
        return self


class BlockDesignSpec(PrivateSpec):
    """Utility-optimized block designs: a report is a block of ``w`` sensitive values, or a value that is not."""

    utility_optimized = True
    takes_tags = True
    largest_size = MOST_POINTS // 2

    name: Literal["ubd"]
    w: BlockSize = None

    def resolved(self, sensitive: int, size: int) -> Self:
        """Return this mechanism with the number for which auto stands.

        Raises:
            ValueError: if no design has blocks of ``w`` points.
        """
        if self.w is None:
            return self.model_copy(update={"w": best_design(self.epsilon, sensitive, size).block})
        try:
            design_of(self.w, sensitive, size)
        except ValueError as error:
            raise ValueError(f"w: {error}") from error
        return self
