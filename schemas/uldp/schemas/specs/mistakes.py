"""Messages about mistakes in specs and truth files, in the words of the file: one escaped, bounded line each."""

import difflib
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from uldp.schemas.specs.families import registered
from uldp.schemas.specs.locations import Place, locate

#: Names of systems with nothing in place of them.
LEFT_OUT = (
    "BLENDER Pufferfish PrivUnit Calibrate THRESH LoPub LoCop LDPart SAFARI SVR LATENT FedSel FedLDA k-means bandits"
    " graphs HR SEM CSEM"
)

#: How a keyboard without Greek letters, or a page that names them, writes these.
_SPELLINGS = {"omega": "w", "ω": "w", "α": "alpha", "ε": "epsilon"}


@contextmanager
def prefixed(prefix: str) -> Iterator[None]:
    """Put a prefix, as the key of a spec, before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from error


def folded(name: str) -> str:
    """Return a name without case and hyphens, and in Latin letters.

    >>> folded("ω-SM"), folded("Omega_SM"), folded("w-sm")
    ('wsm', 'wsm', 'wsm')
    """
    name = name.casefold()
    for spelling, plain in _SPELLINGS.items():
        name = name.replace(spelling, plain)
    return "".join(character for character in name if character.isalnum())


@cache
def in_place() -> Mapping[str, str]:
    """Return what to write, which begins with the name of a mechanism, and the names that it stands for."""
    models = dict.fromkeys(point.load() for point in registered().values())
    return {write: names for model in models for write, names in model.literature.items()}


_NOT_HERE = {folded(name) for name in LEFT_OUT.split()}


def in_place_of(name: str, known: Collection[str]) -> str:
    """Return what to write in place of a name of the literature, to follow this name; "" if it is none.

    >>> in_place_of("S_Hist", ["rr", "hrr"]), in_place_of("S-Hist", ["rr"]), in_place_of("LoPub", ["rr"])
    ('has another name here: write hrr', '', 'is not here; docs/mechanisms.md says why')
    """
    write = next((write for write, names in in_place().items() if folded(name) in map(folded, names.split())), "")
    if write and write.replace(",", "").split()[0] in known:
        return f"has another name here: write {write}"
    return "is not here; docs/mechanisms.md says why" if folded(name) in _NOT_HERE else ""


#: An unknown word is compared with at most this many known words; this takes half a second at worst.
MAX_COMPARED = 2_000
#: The largest number of characters in a quotation; a longer label, key or tag is cut.
_MAX_QUOTED = 80
#: So many keys are listed in an error.
_LISTED = 12

_MAX_PATH = 4096

_NUMBER = r"[+-]?\d{1,40}(\.\d{0,40})?([eE][+-]?\d{1,3})?"


class _Quote(reprlib.Repr):
    """Abbreviates values, and describes integers that are too long for Python to write."""

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > 10_000:  # 3,010 digits; Python writes at most 4,300, because the time is quadratic
            return "a number of thousands of digits"
        return super().repr_int(x, level)


_QUOTE = _Quote()
_QUOTE.maxstring = _QUOTE.maxother = _QUOTE.maxlong = _MAX_QUOTED
_QUOTE.maxlevel = 2

#: Plain words for pydantic's validation errors, by the type of the error.
_PHRASES = {
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "literal_error": "must be one of {expected}",
    "greater_than": "must be more than {gt:,.16g}",
    "greater_than_equal": "must be {ge:,.16g} or more",
    "less_than": "must be less than {lt:,.16g}",
    "less_than_equal": "must be {le:,.16g} or less",
    "too_long": "must have {max_length} entries or fewer",
    "too_short": "must have {min_length} entries or more",
}

#: Those about another form than that of a key.
_OF_FORMS = ("model_type", "model_attributes_type", "dict_type", "list_type")
#: A form to copy of keys that take a mapping or a list; a kind of domain has its own.
FORMS = {
    "budget": "{epsilon: 5.0, every: 7d}",
    "by": "{model: [old, new]}",
    "candidates": "[cat, dog]",
    "discover": "{keep: 32}",
    "domain": "{labels: [cat, dog]}",
    "given": "[[age, city]]",
    "labels": "[cat, dog]",
    "limits": "{min_reports: 100}",
    "mechanism": "{name: rr, epsilon: 1.0}",
    "numbers": "{names: [x, y], low: 0, high: 10}",
    "ranges": "[[0, 10]]",
    "record": "{pet: {labels: [cat, dog]}, age: {number: {low: 0, high: 100}}}",
    "tags": "[{name: home}]",
    "window": "{size: 1h}",
}


def quote(value: object) -> str:
    """Quote a value from a file as printable text of bounded length."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return _QUOTE.repr(value)


def ascii_quote(text: str) -> str:
    r"""Quote a text so that its characters can be told apart, which only ASCII shows.

    >>> ascii_quote("caf" + chr(0xE9))
    "'caf\\xe9'"
    """
    return ascii(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}...")


def plain(text: str) -> str:
    r"""Return a printable path as it is and any other path quoted; only a path too long to exist is cut.

    >>> plain("home.csv"), plain("home" + chr(0) + ".csv")
    ('home.csv', "'home\\x00.csv'")
    """
    if len(text) > _MAX_PATH:
        return quote(text)
    return text if text.isprintable() else repr(text)


def printable(text: str) -> str:
    r"""Replace each character that commands a terminal or reorders text: labels, names and ids from files are data.

    These are the characters that Unicode calls control, format, surrogate, private or unassigned, and all separators
    but the space. Among them are the escape, the bidirectional overrides and isolates, and the ends of lines.

    >>> printable("red" + chr(0x202E) + chr(27) + "[2J")
    'red��[2J'
    """
    if text.isprintable():  # nearly all text is, and a line may be long
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def repeated(texts: Iterable[str]) -> str | None:
    """Return the first text that occurs before; None if all differ."""
    seen: set[str] = set()
    return next((text for text in texts if text in seen or seen.add(text)), None)  # type: ignore[func-returns-value]


def near(word: str, words: Collection[str]) -> str:
    """Return a question about the known word that is most similar to ``word``, or an empty string if none is similar.

    >>> near("Epsilom", ["mechanism", "epsilon"])
    "did you mean 'epsilon'?"
    """
    if len(words) > MAX_COMPARED:
        return ""
    folded = {known[:_MAX_QUOTED].casefold(): known for known in words}
    found = difflib.get_close_matches(word[:_MAX_QUOTED].casefold(), folded, n=1)
    return f"did you mean {quote(folded[found[0]])}?" if found else ""


def notes(*texts: str) -> str:
    """Join the nonempty texts in parentheses, as a suffix for a message.

    >>> notes("got 1", ""), notes("")
    (' (got 1)', '')
    """
    said = "; ".join(filter(None, texts))
    return f" ({said})" if said else ""


def _misread(value: object) -> str:
    """Return how YAML reads an unquoted word that is not text, or an empty string for other values."""
    match value:
        case bool():
            read = "true" if value else "false"
        case int() | float():
            read = f"the number {quote(value)}"
        case date():
            read = f"the date {value}"
        case None:
            read = "nothing"
        case _:
            return ""
    return f"YAML reads this as {read}"


def _text_of_number(value: object) -> str:
    """Return how to write a number that YAML read as text, or an empty string for other values."""
    if not (isinstance(value, str) and re.fullmatch(_NUMBER, value)):
        return ""
    # YAML 1.1, which PyYAML reads, takes 1e-3 and 1.0e3 for text.
    exponent = ", with a point and a signed exponent, as in 1.0e-3" if "e" in value.casefold() else ""
    return f"write it without quotes{exponent}"


def explain(source: str, error: ValidationError, model: type[BaseModel], unions: Mapping[str, str]) -> Iterator[str]:
    """Yield a line per problem: file, key, problem and value; ``unions`` has advice for keys of a word or a list."""
    seen, words = set(), dict[str, list[str]]()
    for problem in error.errors(include_url=False):
        kind, value = problem["type"], problem["input"]
        place = locate(model, problem["loc"], unions)
        keys = place.keys
        expected = re.findall("'([^']+)'", problem.get("ctx", {}).get("expected", ""))
        got = "" if isinstance(value, dict | list | BaseModel) else f"got {quote(value)}"
        if kind == "default_factory_not_called":  # the default depends on a wrong value, and one error is enough
            continue
        if place.union:
            # Pydantic reports an error for each branch of the union: first the branch of words, then the branch of
            # lists. An entry of a list is a number or text, and text comes last.
            key = str(keys[place.union - 1])
            if kind == "literal_error" and len(keys) == place.union:
                words[key] = expected
                continue
            if kind == "int_type":
                continue
            expected = expected or words.get(key, [])
            text, got = unions[key], f"got {quote(value)}"
        elif kind in {"extra_forbidden", "invalid_key"}:
            text, got = "unknown key; check the spelling or remove it", near(str(keys[-1]), place.known)
            homes = [home for home in place.homes if home in FORMS]
            if homes:
                forms = [f"{home}: {FORMS[home]}" for home in homes]
                text, got = f"unknown key here; write it into {' or '.join(homes)}, as {' or '.join(forms)}", ""
            elif not got and 0 < len(place.known) <= _LISTED:
                got = f"known are {', '.join(sorted(place.known))}"
        elif kind == "missing":
            text, got = "missing; add it", ""
        elif kind == "union_tag_not_found":
            keys, text = [*keys, "name"], "missing; add it"
        elif kind == "union_tag_invalid":
            keys, value = [*keys, "name"], value["name"]
            expected = re.findall("'([^']+)'", problem["ctx"]["expected_tags"])
            known = in_place_of(value, expected) if isinstance(value, str) else ""
            similar = near(value, expected) if isinstance(value, str) else ""
            text, got = f"must be one of {_either(expected)}", f"got {quote(value)}"
            if not (known or similar) and "mechanism" in keys:
                got += "; a package may bring one of your own: docs/own_mechanism.md"
            if known or similar:  # first, because there are many names
                text, got = f"{quote(value)} {known}" if known else f"{quote(value)}: {similar} It {text}", ""
        else:
            text = _text(problem, place)
        if kind == "string_type" and (read := _misread(value)):
            got = f"{read}; {'if it is a label, ' if place.union else ''}write it in quotes"
        if kind in {"float_type", "int_type"}:
            got = "; ".join(filter(None, [got, _text_of_number(value)]))
        similar = near(value, expected) if got and isinstance(value, str) else ""
        text += notes(got, similar)
        names = [plain(part) if len(part) <= _MAX_QUOTED else quote(part) for part in map(str, keys)]
        line = f"{source}: {'.'.join(names) + ': ' if names else ''}{text}"
        if line not in seen:
            seen.add(line)
            yield line


def _text(problem: Mapping[str, Any], place: Place) -> str:
    """Return the problem with a value, without the value."""
    kind = problem["type"]
    if kind == "string_pattern_mismatch":
        return f"must be {place.description}"
    if kind in _PHRASES:
        form = FORMS.get(str(place.keys[-1]), place.form) if kind in _OF_FORMS and place.keys else ""
        return _PHRASES[kind].format(**problem.get("ctx", {})) + (f", as {place.keys[-1]}: {form}" if form else "")
    message: str = problem["msg"]
    return message.removeprefix("Value error, ")


def _either(words: list[str]) -> str:
    return f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
