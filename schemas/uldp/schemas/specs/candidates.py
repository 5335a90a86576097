"""Strings whose shares the collector estimates: candidates, and those that it looks for. Devices do not know them."""

from collections.abc import Callable, Sequence

from pydantic import Field

from uldp.schemas.specs.mistakes import plain, quote
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.tables import read_column


class Discover(Strict):
    """The search for frequent strings, by their prefixes.

    Attributes:
        keep: How many prefixes of each length are kept.
        most: How many whole strings are tested at the most.
    """

    keep: int = Field(default=32, ge=1, le=1024)
    most: int = Field(default=64, ge=1, le=1024)


#: The strings that a spec asks about have at most so many bytes together, because each estimate holds them.
MOST_CANDIDATE_BYTES = 1 << 22
#: The largest size of their file, which may have quotes, and ends of lines.
MOST_CANDIDATE_FILE_BYTES = 1 << 24
#: The most lines of it, empty ones too.
MOST_CANDIDATE_LINES = 1 << 18


def read_candidates(
    listed: Sequence[str] | None, file: str | None, read: Callable[[str], str], most: int, folder: SpecFolder
) -> Sequence[str]:
    """Return candidates, listed or of a CSV file; ValueError, which begins with the key, if that is not possible."""
    if listed is not None and file is not None:
        raise ValueError("candidates: give the list or candidates_file; remove one")
    if file is None:
        key, found = "candidates", list(listed or ())
    else:
        key = f"candidates_file: {plain(str(folder.path / file))}"
        with folder.file(file, "candidates_file") as path:
            found = read_column(path, MOST_CANDIDATE_FILE_BYTES, MOST_CANDIDATE_LINES)
    if len(found) > most:
        raise ValueError(
            f"{key}: {len(found):,} strings, but an estimate of this mechanism has at most {most:,}; ask about fewer"
            " at a time"
        )
    seen: set[str] = set()
    for number, text in enumerate(found, 1):
        at = f"{'entry' if file is None else 'value'} {number}, {quote(text)}"
        try:
            read(text)
        except ValueError as error:
            raise ValueError(f"{key}: {at}: {error}; shorten or remove it") from error
        if text in seen:
            raise ValueError(f"{key}: {at}, occurs twice; remove one")
        seen.add(text)
    if (size := sum(len(text.encode()) for text in seen)) > MOST_CANDIDATE_BYTES:
        raise ValueError(
            f"{key}: the strings have {size:,} bytes together, at most {MOST_CANDIDATE_BYTES:,} are allowed, because"
            " each estimate holds them; ask about fewer at a time"
        )
    return found
