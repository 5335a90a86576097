"""The names that each package declares as its own: there, complete, and no more expensive than what they need."""

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("uldp.schemas", "uldp.mechanisms", "uldp.collector", "uldp.transforms", "uldp.pipelines")


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_is_there_and_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))  # ruff orders them
    assert all(getattr(module, name).__doc__ for name in module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_no_attribute(package: str) -> None:
    with pytest.raises(AttributeError, match="Agregate"):
        _ = importlib.import_module(package).Agregate


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
