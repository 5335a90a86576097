"""What packages add: extras to install, and entry points beside what this project has itself."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from importlib.metadata import EntryPoint, entry_points

from uldp.schemas.errors import RequestError, UldpError


def install(*extras: str, of: str = "uldp-stream") -> str:
    """Return the command that adds extras to what is installed of a distribution, from where it came.

    A name in an index that is not the project's own may be a stranger's. So what was installed from a clone or a file
    names that.

    >>> install("gcp", of="apache-beam")
    "pip install 'apache-beam[gcp]'"
    """
    try:
        origin = json.loads(metadata.distribution(of).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    source = ""
    if "url" in origin:  # PEP 610
        scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        source = f" @ {scheme}{origin['url']}"
    return f"pip install '{of}[{','.join(extras)}]{source}'"


@contextmanager
def needed(by: str, *extras: str, refusal: type[UldpError] = RequestError) -> Iterator[None]:
    """Import what only some of the program needs; ``refusal`` with the command to install it, if it is missing."""
    try:
        yield
    except ImportError as error:
        raise refusal(f"{by} needs {error.name}; install it: {install(*extras)}") from error


def with_packages(group: str, own: Mapping[str, str]) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, the project's ``own`` first; ValueError if two have one name."""
    found = {name: EntryPoint(name, value, group) for name, value in own.items()}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        if point.name in found:
            raise RequestError(
                f"{found[point.name].value} and {point.value} both have the name {point.name} in {group}; uninstall the"
                " package of one"
            )
        found[point.name] = point
    return found
