"""What packages bring by entry points, beside what this project has itself; nothing is imported before it is loaded."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from uldp.schemas.errors import RequestError


def with_packages(group: str, own: Mapping[str, str]) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by their names: first the project's own, then those of other packages.

    Args:
        own: The project's own: names, and the module and the object of each, as ``module:object``.

    Raises:
        ValueError: if two have one name; which of them counts must not depend on the order of packages.
    """
    found = {name: EntryPoint(name, value, group) for name, value in own.items()}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        if point.name in found:
            raise RequestError(
                f"{found[point.name].value} and {point.value} both have the name {point.name} in {group}; uninstall the"
                " package of one"
            )
        found[point.name] = point
    return found
