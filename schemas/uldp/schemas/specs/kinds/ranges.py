"""Ranges of numbers, or of values in the order of the domain: neighbouring bins, whose shares add up."""

from typing import Annotated, NamedTuple

from pydantic import Field

#: An end of a range in a spec: a number, or a value by its label or index.
End = int | float | str
#: The ends of a range in a spec.
Ends = Annotated[list[End], Field(min_length=2, max_length=2)]


class Range(NamedTuple):
    """Neighbouring bins.

    Attributes:
        end: The bin after the last one.
        text: The range in the words of its domain.
    """

    first: int
    end: int
    text: str
