"""Texts that a reader cannot tell apart, or cannot see: labels and candidates with such differences split a share."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

#: Characters that Unicode shows as nothing, beside those of the categories control and format.
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

#: Characters that join letters in Persian and in emoji, and one that colors emoji, where they have something to do.
_JOINING = re.compile("(?<=[^\\s\x00-\x7f])(?:[\u200c\u200d](?=[^\\s\x00-\x7f])|\ufe0f)")


def visible(text: str) -> str:
    r"""Return what a reader sees of a text: composed letters, single spaces, and nothing invisible.

    >>> visible(" cafe" + chr(0x301) + chr(0x200B) + chr(0xA0) + "bar\t") == "caf" + chr(0xE9) + " bar"
    True
    """
    if not text.isascii():
        text = _IGNORED.sub("", text)
        text = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in {"Cf", "Cc"})
        text = unicodedata.normalize("NFC", text)
    elif not text.isprintable():
        text = "".join(c for c in text if c.isspace() or c.isprintable())
    return " ".join(text.split())


def alike(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each text that looks like an earlier, different one, behind that one."""
    first: dict[str, str] = {}
    for text in texts:
        if (earlier := first.setdefault(visible(text), text)) != text:
            yield earlier, text


def unseen(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text that shows nothing, begins or ends with a space, or has characters that nobody sees."""
    for text in texts:
        shown = _JOINING.sub("", text)
        if not shown or shown != shown.strip() or not shown.isprintable() or _IGNORED.search(shown):
            yield text
