"""Specs, and the tables that they name, as files: read within bounds, and refused in words that say where."""

import csv
import io
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from uldp.schemas.mistakes import plain, quote

#: Bytes of a spec and of a table at the most; whatever is longer is another file.
MAX_SPEC_BYTES = 16 << 20
MAX_TABLE_BYTES = 1 << 30

#: What YAML says of what is left open, in plain words. It notices that lines later, or at the end of the file.
_LEFT_OPEN = {
    "while scanning a simple key": "a key without a colon after it",
    "while scanning a quoted scalar": "a quote is opened here and not closed",
    "while parsing a flow (sequence|mapping)": "a bracket is opened here and not closed, or a comma is missing in it",
}
#: What YAML says of other common mistakes.
_PHRASES = {
    "mapping values are not allowed": (
        "a colon where none can be; write the value in quotes, or check the indentation and the line before"
    ),
    r"'\\t' that cannot start": "a tab; indent with spaces",
    "cannot start any token": "a character that begins no value; write the value in quotes",
    "expected <block end>": "a line that is not indented as the others are",
    "constructor for the tag|base64": "a tag that begins with an exclamation mark; write the value in quotes",
    "undefined alias": "a value that begins with an asterisk; write it in quotes",
    "recursive": "a value that holds itself; write it out",
}


class SpecError(ValueError):
    """A spec that cannot be used. The message is one line for each problem, made for a person."""


def read_text(path: Path, limit: int) -> str:
    """Read a file of no more than ``limit`` bytes as text.

    Raises:
        ValueError: if that cannot be done. The message does not name the file.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ValueError(f"{error.strerror or error}; check the path") from error
    except ValueError as error:  # the name has a null character
        raise ValueError("no file has such a name; check the path") from error
    if len(data) > limit:
        raise ValueError(f"more than {limit:,} bytes; is this the right file?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8 text; is this the right file?") from error
    if "\0" in text:
        raise ValueError("not a text file; is this the right file?")
    return text


def read_spec(path: Path) -> object:
    """Read the YAML of a spec file.

    Raises:
        SpecError: if there is none.
    """
    try:
        text = read_text(path, MAX_SPEC_BYTES)
        return yaml.load(text, Loader=_SpecLoader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise SpecError(f"{path}: {_words(error)}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(f"{path}: line {line}: a character that no text has, {quote(text[error.position])}") from error
    except RecursionError as error:
        raise SpecError(f"{path}: brackets or lists too deep in one another; is this a spec?") from error
    except ValueError as error:
        raise SpecError(f"{path}: {error}") from error


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Read the rows of a CSV file, without empty ones, each with the number of its line.

    Raises:
        ValueError: if it cannot be read. The message does not name the file.
    """
    rows = csv.reader(io.StringIO(read_text(path, MAX_TABLE_BYTES), newline=""))
    try:
        return [(rows.line_num, row) for row in rows if row]
    except csv.Error as error:
        limit = csv.field_size_limit()
        raise ValueError(
            f"line {rows.line_num}: a field of more than {limit:,} characters; is a quote not closed?"
        ) from error


def read_weight(text: str) -> float:
    """Read the weight of a row.

    Raises:
        ValueError: unless it is a finite number of 0 or more.
    """
    try:
        weight = float(text)
    except ValueError:
        weight = -1
    if not 0 <= weight < float("inf"):
        raise ValueError(f"weight {quote(text)} must be a finite number of 0 or more")
    return weight


class _RefusedError(yaml.constructor.ConstructorError):
    """YAML that no spec may have; the problem is in plain words."""

    def __init__(self, problem: str, mark: yaml.Mark | None) -> None:
        super().__init__(None, None, problem, mark)


def _words(error: yaml.MarkedYAMLError) -> str:
    """Say where a file is no YAML, or no YAML for a spec, and why."""
    if isinstance(error, _RefusedError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    said = f"{error.context or ''} {error.problem or ''}"
    opened = next((words for pattern, words in _LEFT_OPEN.items() if re.search(pattern, said)), None)
    other = next((words for pattern, words in _PHRASES.items() if re.search(pattern, said)), plain(str(error.problem)))
    mark = error.problem_mark if opened is None else error.context_mark
    where = f"line {mark.line + 1}: " if mark is not None else ""
    kind = "" if isinstance(error, yaml.constructor.ConstructorError) else "not YAML: "
    return f"{where}{kind}{opened or other}"


class _SpecLoader(yaml.SafeLoader):
    """YAML lets a repeated key win silently; a spec must not. And each value that cannot be read has a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Make a value of a node."""
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # whatever int, float or date make of a bad scalar
            problem = f"{quote(node.value)} looks like a number or a date and is none; write it in quotes"
            raise _RefusedError(problem, node.start_mark) from error


def _construct_mapping(loader: _SpecLoader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    found: dict[Hashable, Any] = {}
    for (key_node, _), (key, value) in zip(node.value, loader.construct_pairs(node, deep=True), strict=True):
        if not isinstance(key, Hashable):
            raise _RefusedError("a list or a mapping as a key; a key is a word", key_node.start_mark)
        if key in found:
            raise _RefusedError(f"key {quote(key)} stands twice; remove one", key_node.start_mark)
        found[key] = value
    return found


_SpecLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
