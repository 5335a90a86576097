"""Who may post: a table of tokens, and the sender that each one stands for."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from uldp.schemas.errors import DataError, RequestError
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.tables import Table

_HEADER = ("token", "sender")
#: A token has so many characters or more, so that nobody can guess it.
LEAST_CHARACTERS = 16


class Tokens:
    """Finds the sender of a token, by digests, so how long this takes says nothing about the tokens."""

    def __init__(self, senders: Mapping[str, str]) -> None:
        """Take the sender of each token; RequestError, without a token, if one is too short or of nobody."""
        if not senders:
            raise RequestError("the file has no tokens; write one a line, as TOKEN,SENDER")
        for token, sender in senders.items():
            if len(token) < LEAST_CHARACTERS or not (token.isascii() and token.isprintable()):
                raise RequestError(
                    f"a token has {LEAST_CHARACTERS} printable ASCII characters or more; draw it with"
                    " secrets.token_urlsafe(32)"
                )
            if not sender:
                raise RequestError("a token has no sender; write one behind the comma")
        self._senders = {_digest(token): sender for token, sender in senders.items()}

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a CSV table with the header ``token,sender``; RequestError names file and line, and shows no token."""
        found: dict[str, str] = {}
        try:
            table = Table.read(path, _HEADER)
        except DataError as error:  # of the file
            raise RequestError(f"{plain(str(path))}: {error}") from error
        except ValueError:  # whose text shows the line that is wrong, and so a token
            raise RequestError(f"{plain(str(path))}: not a table of token,sender") from None
        for line, row in table.rows:
            if len(row) != len(_HEADER) or row[0] in found:
                why = "the token occurs twice" if len(row) == len(_HEADER) else f"the row has {len(row)} fields"
                raise RequestError(f"{plain(str(path))}: line {line}: {why}; write TOKEN,SENDER once")
            found[row[0]] = row[1]
        try:
            return cls(found)
        except RequestError as error:
            raise RequestError(f"{plain(str(path))}: {error}") from error

    def sender(self, authorization: str) -> str | None:
        """Return the sender of the header ``Authorization``; None if it has no known token."""
        scheme, _, token = authorization.partition(" ")
        return self._senders.get(_digest(token.strip())) if scheme.lower() == "bearer" else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
