"""How strings are spelled by pieces: the pieces of a string, its prefixes, and the prefixes that may follow one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property


class Spelling:
    """The pieces of a public vocabulary, by which each string is spelled in one way: the longest piece comes first.

    The first piece of a string is the longest one that it begins with; the rest is spelled likewise. So the first
    pieces of a string, joined, are spelled by these pieces. Each character of the alphabet is a piece.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self.pieces = tuple(sorted(set(pieces)))
        self._known = frozenset(self.pieces)
        self._lengths = sorted({len(piece) for piece in self.pieces}, reverse=True)

    def split(self, text: str) -> list[str] | None:
        """Return the pieces of a string; None if it has a character that is in no alphabet.

        >>> Spelling(["a", "b", "c", "ab", "abc"]).split("abacaba")
        ['ab', 'a', 'c', 'ab', 'a']
        """
        found, at = [], 0
        while at < len(text):
            piece = next((text[at : at + size] for size in self._lengths if text[at : at + size] in self._known), None)
            if piece is None:
                return None
            found.append(piece)
            at += len(piece)
        return found

    def following(self, prefix: str, pieces: int, longest: int) -> Iterator[tuple[str, int]]:
        """Yield a prefix and what up to ``pieces`` more spell, in ``longest`` bytes, with their number."""
        level = [prefix]
        yield prefix, 0
        for number in range(1, pieces + 1):
            level = [text for before in level for text in self._after(before, longest)]
            for text in level:
                yield text, number

    def _after(self, prefix: str, longest: int) -> Iterator[str]:
        """Yield the texts that are spelled by the pieces of a prefix and one further piece."""
        joined = self._joined(prefix)
        left = longest - len(prefix.encode())
        for piece, size in zip(self.pieces, self._sizes, strict=True):
            if size <= left and not (joined and any(piece[:end] in joined for end in range(1, len(piece) + 1))):
                yield prefix + piece

    def _joined(self, prefix: str) -> Set[str]:
        """Return the beginnings of a further piece with which it would change how the prefix is spelled."""
        found: set[str] = set()
        end = 0
        for piece in (self.split(prefix) or ()) if self._rests else ():
            # A longer piece than this one would have to begin where it begins, and reach behind the prefix.
            found.update(self._rests.get(prefix[end:], ()))
            end += len(piece)
        return found

    @cached_property
    def _sizes(self) -> Sequence[int]:
        return [len(piece.encode()) for piece in self.pieces]

    @cached_property
    def _rests(self) -> dict[str, list[str]]:
        """What is behind each beginning of a piece."""
        rests = defaultdict(list)
        for piece in self.pieces:
            for end in range(1, len(piece)):
                rests[piece[:end]].append(piece[end:])
        return rests
