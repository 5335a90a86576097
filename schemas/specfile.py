"""Spec files as text: reading them, and saying what is wrong with them to a person."""

import csv
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError


class SpecError(ValueError):
    """A spec that cannot be used. The message is one line for each problem, made for a person."""


def read_spec(path: Path) -> object:
    """Read the YAML of a spec file.

    Raises:
        SpecError: if there is none.
    """
    try:
        data: object = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506 (a SafeLoader)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}; check the path") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 text; is this a spec?") from error
    except Exception as error:  # beside its own errors, yaml raises what int, float or date make of a bad scalar
        raise SpecError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return data


def read_rows(path: Path, where: str) -> list[list[str]]:
    """Read the rows of a CSV file that a spec names, without empty ones.

    Raises:
        ValueError: if it cannot be read; ``where`` is the key that names it.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{where}: cannot read {path}: {error}") from error


def explain(source: str, error: ValidationError, unions: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per problem: file, key, what is wrong with which value.

    Args:
        source: The file.
        error: What validation found.
        unions: What to write under the keys that take a word or a list.
    """
    seen = set()
    for problem in error.errors(include_url=False):
        location, kind, value = problem["loc"], problem["type"], problem["input"]
        if location and location[0] in unions:
            # Each branch of the union complains, and names itself in the location: the word, then the list.
            if len(location) == 2 and kind == "literal_error":
                continue
            location = (location[0], *(part for part in location[1:] if isinstance(part, int)))
            text = f"{unions[str(location[0])]} (got {value!r})"
        elif kind in {"extra_forbidden", "invalid_key"}:
            text = "unknown key; check the spelling or remove it"
            location = tuple(part for part in location if part != "[key]")
        elif kind == "missing":
            text = "missing; add it"
        else:
            text = "must be a mapping" if kind == "model_type" else problem["msg"].removeprefix("Value error, ")
            if not isinstance(value, dict | list | BaseModel):
                text += f" (got {value!r})"
        keys = [str(part) for part in location]
        line = f"{source}: {'.'.join(keys) + ': ' if keys else ''}{text}"
        if line not in seen:
            seen.add(line)
            yield line


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML lets a repeated key win silently; a spec must not."""


def _construct_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    pairs = loader.construct_pairs(node, deep=True)
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
    return dict(pairs)


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
