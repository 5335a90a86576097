"""Other strings to ask for, and another search for strings that nobody lists, put to kept counts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from uldp.mechanisms.questions.span import Version
from uldp.pipelines.results.kept import Kept
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.candidates import Discover
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.variable import Variable


def asking(kept: Kept, candidates: Path | None, discover: Discover | None) -> Kept:
    """Return counts under specs with other candidates, from a CSV file with the column ``value``, or another search.

    RequestError if a collection has no strings, more than one attribute of strings, or finds none, or if the file
    cannot be read, or has other strings than those of the domain.
    """
    if candidates is None and discover is None:
        return kept
    versions = {key: _version(version.spec, candidates, discover) for key, version in kept.versions.items()}
    return replace(kept, versions=versions)


def _version(spec: CollectionSpec, candidates: Path | None, discover: Discover | None) -> Version:
    variables: dict[str, Variable] = dict(spec.variables)
    if candidates is not None:
        name = _only(spec, "candidates", {name: each.kind.takes_candidates for name, each in variables.items()})
        asked = variables[name]
        folder, most = SpecFolder(candidates.parent), asked.mechanism.most_candidates
        try:
            variables[name] = replace(asked, candidates=asked.kind.candidates(None, candidates.name, most, folder))
        except ValueError as error:
            raise RequestError(f"--candidates: {str(error).removeprefix('candidates_file: ')}") from error
    if discover is not None:
        name = _only(spec, "discover", {name: each.mechanism.discovers for name, each in variables.items()})
        variables[name] = replace(variables[name], discover=discover)
    return Version(spec.with_variables(variables))


def _only(spec: CollectionSpec, option: str, fitting: Mapping[str, bool]) -> str:
    """Return the only variable that an option is for."""
    names = [name for name, fits in fitting.items() if fits]
    if len(names) != 1:
        where, of = f"--{option}: collection {spec.collection} version {spec.version}", spec.mechanism.name
        if not names:
            raise RequestError(f"{where}: {of} has no strings for this; choose another with --collection")
        raise RequestError(f"{where} has several attributes of strings: {', '.join(names)}; change its spec")
    return names[0]
