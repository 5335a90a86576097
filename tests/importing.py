"""Whether the family of each mechanism can be imported, which nearly all tests need, and whether it has its name."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_args

from uldp.mechanisms import families
from uldp.schemas.specs.families import mechanism_names, registered
from uldp.schemas.specs.mechanism_family import MechanismFamily


def not_imported() -> list[str]:
    """Say of each mechanism why its spec cannot be imported."""
    found = []
    for name, point in registered().items():
        try:
            point.load()
        except (ImportError, AttributeError) as error:
            found.append(f"{name}: its spec, {point.value}, cannot be imported: {error}")
    return found


def not_registered() -> list[str]:
    """Say of each spec in a folder of a family that no mechanism has its name."""
    return [
        f"{name}: add a line with {model.__module__}:{model.__name__} to schemas/uldp/schemas/specs/families.py"
        for path in sorted(Path(families.__file__).parent.glob("*/spec.py"))
        for model in _models(import_module(f"{families.__name__}.{path.parent.name}.spec"))
        for name in get_args(model.model_fields["name"].annotation)
        if name not in mechanism_names()
    ]


def _models(module: ModuleType) -> Iterator[type[MechanismFamily]]:
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, MechanismFamily) and each.__module__ == module.__name__:
            yield each
