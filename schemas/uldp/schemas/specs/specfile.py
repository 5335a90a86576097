"""Read spec files and other text, with limits on size, and with errors that name the line."""

import codecs
import os
import re
import stat
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from uldp.schemas.errors import DataError, UldpError
from uldp.schemas.regular_files import read_bounded
from uldp.schemas.specs.mistakes import plain, prefixed, quote

#: The largest size of a spec in bytes; a longer file is probably the wrong file.
MAX_SPEC_BYTES = 16 << 20
#: What a file in UTF-16 or UTF-32 begins with; spreadsheets write such files.
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)

#: Plain words for PyYAML's errors about unclosed keys, quotes and brackets. PyYAML notices these errors some lines
#: later, or at the end of the file.
_LEFT_OPEN = {
    "while scanning a simple key": "the key has no colon after it",
    "while scanning a quoted scalar": "a quote is opened here and not closed",
    "while parsing a flow (sequence|mapping)": "a bracket is opened here and not closed, or a comma is missing in it",
}
#: Plain words for PyYAML's errors about other common mistakes.
_PHRASES = {
    "mapping values are not allowed": (
        "a colon is not allowed here; write the value in quotes, or check the indentation and the line before"
    ),
    r"'\\t' that cannot start": "the line is indented with a tab; use spaces",
    "cannot start any token": "no value can begin with this character; write the value in quotes",
    "expected <block end>": "the indentation of the line does not match the lines around it; correct it",
    "yaml.org,2002:merge": "a spec takes no keys from elsewhere by <<; write the keys out, or text as '<<'",
    "yaml.org,2002:value": "YAML gives = a meaning of its own; write it in quotes, as '='",
    "constructor for the tag|base64": "no value can begin with an exclamation mark; write it in quotes",
    "undefined alias": "no value can begin with an asterisk; write it in quotes",
    "recursive": "a value contains itself; write it out",
}


class SpecError(UldpError):
    """A spec is invalid. The message has one readable line for each problem."""


def read_text(path: Path, limit: int) -> str:
    """Read a text of up to ``limit`` bytes; ValueError, which does not name the file, if that is not possible."""
    try:
        with path.open("rb") as file:  # a device or a pipe has no size
            data = read_bounded(file, limit)
    except DataError as error:
        raise DataError(f"{error}; is this the right file?") from error
    except (OSError, ValueError) as error:
        raise DataError(unreadable(error)) from error
    if data.startswith(_WIDE):
        raise DataError("the file is UTF-16 or UTF-32 text; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("the file is not UTF-8 text; is this the right file?") from error
    if "\0" in text:
        raise DataError("the file is not a text file; is this the right file?")
    return text


def unreadable(error: OSError | ValueError) -> str:
    """Say why a file cannot be opened; Python has a ValueError for names that no file can have."""
    if isinstance(error, OSError):
        return f"{error.strerror or error}; check the path"
    return "no file can have this name; check the path"


def read_spec(path: Path) -> object:
    """Read the YAML of a spec file; SpecError if the file cannot be read or is not valid YAML."""
    try:
        text = read_text(path, MAX_SPEC_BYTES)
        return yaml.load(text, Loader=_SpecLoader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise SpecError(f"{path}: {_words(error)}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(
            f"{path}: line {line}: YAML does not allow the character {quote(text[error.position])}; remove it"
        ) from error
    except RecursionError as error:
        raise SpecError(f"{path}: brackets or lists are nested too deeply; is this a spec?") from error
    except ValueError as error:
        raise SpecError(f"{path}: {error}") from error


class _RefusedError(UldpError, yaml.constructor.ConstructorError):
    """A spec has YAML that specs may not use; the message says the problem in plain words."""

    def __init__(self, problem: str, mark: yaml.Mark | None) -> None:
        yaml.constructor.ConstructorError.__init__(self, None, None, problem, mark)


def _words(error: yaml.MarkedYAMLError) -> str:
    """Return the line and the reason of a YAML error in plain words."""
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
    """A YAML loader that rejects repeated keys, which PyYAML accepts, and names the line of each invalid value."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct the value of a node."""
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # int, float and date raise many kinds of errors for a bad scalar
            problem = f"{quote(node.value)} is not a valid number or date; write it in quotes if it is text"
            raise _RefusedError(problem, node.start_mark) from error


def _construct_mapping(loader: _SpecLoader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    found: dict[Hashable, Any] = {}
    for (key_node, _), (key, value) in zip(node.value, loader.construct_pairs(node, deep=True), strict=True):
        if not isinstance(key, Hashable):
            raise _RefusedError("a key must be a word, not a list or a mapping", key_node.start_mark)
        if key in found:
            raise _RefusedError(f"key {quote(key)} occurs twice; remove one", key_node.start_mark)
        found[key] = value
    return found


_SpecLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


@dataclass(frozen=True)
class SpecFolder:
    """Where the files are that a spec names.

    A spec may come from somebody else, and what is in these files reaches results that others read. So a spec opens
    regular files of its own folder alone, unless its user allows a larger folder.
    """

    path: Path
    #: The folder below which the files must be, with all links followed; None for the folder of the spec.
    below: Path | None = None

    @contextmanager
    def file(self, name: str, key: str) -> Iterator[Path]:
        """Give the path of a file; ValueErrors of the context, and as of ``find``, begin with the key and the path."""
        with prefixed(f"{key}: {plain(str(self.path / name))}: "):
            yield self.find(name)

    def find(self, name: str) -> Path:
        """Return the path of a file by its name; ValueError, without it, if it is not regular, or not below."""
        path, allowed = self.path / name, self.below or self.path
        try:
            inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(allowed))
            mode = path.stat().st_mode if inside else 0
        except (OSError, ValueError) as error:
            raise ValueError(unreadable(error)) from error
        if not inside:
            raise ValueError(
                f"the file is not below {plain(str(allowed))}; move it there, or allow another folder with uldp"
                " --files-below FOLDER"
            )
        if stat.S_ISDIR(mode):
            raise ValueError("Is a directory; check the path")
        if not stat.S_ISREG(mode):
            raise ValueError("a pipe, a socket or a device is no regular file; copy what it holds to a file")
        return path
