"""The names that each package declares as its own: there, complete, and no more expensive than what they need."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property

import pytest

PACKAGES = ("uldp.schemas", "uldp.mechanisms", "uldp.collector", "uldp.transforms", "uldp.pipelines")


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_is_there_and_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))  # ruff orders them
    assert all(getattr(module, name).__doc__ for name in module.__all__)


def undocumented(package: str) -> Iterator[str]:
    """Yield each public method of a public class that has no docstring, and overrides no method that has one."""
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        for name, of in vars(importlib.import_module(found.name)).items():
            if isinstance(of, type) and of.__module__ == found.name and not name.startswith("_"):
                public = (member for member in vars(of) if not member.startswith("_"))
                methods = (each for each in public if inspect.isroutine(getattr(of, each)) or is_property(of, each))
                yield from (f"{found.name}.{name}.{each}" for each in methods if not inspect.getdoc(getattr(of, each)))


def is_property(of: type, name: str) -> bool:
    return isinstance(vars(of)[name], property | cached_property)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_public_method_is_documented_where_it_is_defined_first(package: str) -> None:
    assert not list(undocumented(package))


@pytest.mark.parametrize(
    ("imported", "too_much"),
    [
        ("from uldp.schemas import CollectionSpec", ["apache_beam", "grpc", "scipy"]),
        ("from uldp.mechanisms import Device", ["apache_beam", "grpc", "scipy"]),
        ("from uldp.collector import ReportReader", ["apache_beam", "grpc"]),
        ("import uldp.transforms", ["apache_beam", "grpc"]),
        ("from uldp.pipelines import ResultsFolder", ["apache_beam", "grpc"]),
    ],
)
def test_what_is_imported_needs_no_more_than_it_uses(imported: str, too_much: list[str]) -> None:
    program = f"import sys; {imported}; print(*(name for name in {too_much} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
