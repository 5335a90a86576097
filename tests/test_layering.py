"""The layers: imports run downwards only, and whatever is imported from outside is declared.

schemas <- mechanisms <- collector <- transforms <- pipelines. ``mechanisms`` is NumPy and special functions, and Beam
begins with ``transforms``.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import KINDS

ROOT = Path(__file__).parents[1]
#: From the lowest layer to the highest.
FOLDERS = ("schemas", "mechanisms", "collector", "transforms", "pipelines")
PACKAGES = tuple(f"uldp.{folder}" for folder in FOLDERS)
#: What uses the packages.
USERS = ("tests", "benchmarks", "examples", "docs", "deploy")
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
#: A folder for each family of mechanisms.
FAMILIES = ROOT / "mechanisms" / "uldp" / "mechanisms" / "families"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """The full name of every module that a file imports, inside of functions too."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            yield node.module


def at_import(path: Path) -> set[str]:
    """The top-level names that a file imports when it is imported itself."""
    nodes = parsed(path).body
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {first(name) for name in names} - sys.stdlib_module_names


def top_level(path: Path) -> set[str]:
    """The top-level names that a file imports; of ours, ``uldp.`` and the package."""
    return {first(name) for name in imports(path)} - sys.stdlib_module_names


def first(name: str) -> str:
    ours = name.removeprefix("uldp.").partition(".")[0]
    return f"uldp.{ours}" if name.startswith("uldp.") else ours


def package_of(path: Path) -> str:
    return f"uldp.{path.relative_to(ROOT).parts[0]}"


def distributions(requirements: list[str]) -> set[str]:
    """The normalized names in a list of requirements."""
    names = {re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0] for requirement in requirements}
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIRED = distributions(PROJECT["dependencies"])
EXTRAS = {name: distributions(extra) for name, extra in PROJECT["optional-dependencies"].items()}
#: Which distributions an import may come from.
DISTRIBUTIONS = metadata.packages_distributions()


def undeclared(names: set[str], declared: set[str]) -> set[str]:
    """Top-level imports that come from none of the ``declared`` distributions."""
    return {name for name in names - {*PACKAGES, *USERS} if not declared & of_import(name)}


def of_import(name: str) -> set[str]:
    """The distributions that an import may come from."""
    if name == "google":  # many share the name, and this project's are of one extra
        return EXTRAS["gcp"]
    # What is not installed, as an extra need not be, is named like its distribution.
    return distributions(DISTRIBUTIONS.get(name, [name]))


def id_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_look_at() -> None:
    assert {package_of(path) for path in MODULES} == set(PACKAGES)


def offenders(names: Callable[[Path], set[str]], modules: Iterable[Path] = MODULES) -> dict[str, set[str]]:
    """The modules for which there are any of these names, with the names."""
    return {id_of(path): found for path in modules if (found := names(path))}


def of_layers(*layers: str) -> list[Path]:
    return [path for path in MODULES if path.relative_to(ROOT).parts[0] in layers]


def test_imports_run_downwards() -> None:
    def upwards(path: Path) -> set[str]:
        lower_or_same = set(PACKAGES[: PACKAGES.index(package_of(path)) + 1])
        return top_level(path) & {*PACKAGES, *USERS} - lower_or_same

    assert offenders(upwards) == {}


def name_of(path: Path) -> str:
    """The name of a module, as an import has it."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in MODULES}


def ours(path: Path, *, types: bool) -> set[str]:
    """The modules of this project that a file imports, inside of functions too; for types alone only if asked for."""
    found, nodes = set[str](), list(ast.iter_child_nodes(parsed(path)))
    while nodes:
        match nodes.pop():
            case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=otherwise) if not types:
                nodes += otherwise
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {each if (each := f"{module}.{alias.name}") in NAMES else module for alias in names}
            case node:
                nodes += ast.iter_child_nodes(node)
    return found & NAMES.keys() - {name_of(path)}


def circle(needs: dict[str, set[str]]) -> list[str]:
    """The members of a circle, each of which needs the one before it; empty if there is none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("layer", FOLDERS)
def test_no_folders_of_a_layer_import_each_other_in_a_circle(layer: str) -> None:
    """With all below each folder; a module beside them counts as one."""

    def folder(name: str) -> str:
        return ".".join(name.split(".")[:3])

    needs: dict[str, set[str]] = {}
    for path in of_layers(layer):
        inside = {folder(name) for name in ours(path, types=True) if name.startswith(f"uldp.{layer}.")}
        needs.setdefault(folder(name_of(path)), set()).update(inside - {folder(name_of(path))})
    assert any(needs.values())
    assert circle(needs) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({name: ours(path, types=False) for name, path in NAMES.items()}) == []


def test_mechanisms_are_numpy_and_special_functions() -> None:
    def others(path: Path) -> set[str]:
        # The models of specs and the content of a ledger are pydantic's.
        of_specs = {"pydantic"} if path.is_relative_to(FAMILIES) or path.stem in ("cohort_sizes", "ledger") else set()
        used = {name for name in imports(path) if name.startswith("scipy.")}
        nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom) and node.module == "scipy"]
        used |= {f"scipy.{alias.name}" for node in nodes for alias in node.names}
        # scipy.stats takes longer to import than all else together.
        used -= {"scipy.special", "scipy.fft"}
        ours = {"numpy", "uldp.schemas", "uldp.mechanisms", "scipy", "lazy_loader", *of_specs}
        return (top_level(path) - ours) | used

    assert offenders(others, of_layers("mechanisms")) == {}


def test_schemas_know_no_scipy() -> None:
    assert offenders(lambda path: top_level(path) & {"scipy"}, of_layers("schemas")) == {}


def test_nobody_below_transforms_knows_beam() -> None:
    below = of_layers("schemas", "mechanisms", "collector")
    assert offenders(lambda path: top_level(path) & {"apache_beam", "grpc"}, below) == {}


def test_what_users_run_imports_what_is_declared() -> None:
    extras = set[str]().union(*(names for extra, names in EXTRAS.items() if extra != "dev"))
    assert offenders(lambda path: undeclared(top_level(path), REQUIRED | extras)) == {}
    # Who has no extra can import all of the library but the transforms, and is told when it is used.
    library = of_layers("schemas", "mechanisms", "collector")
    assert offenders(lambda path: undeclared(at_import(path), REQUIRED), library) == {}
    transforms = of_layers("transforms")
    assert offenders(lambda path: undeclared(at_import(path), REQUIRED | EXTRAS["beam"]), transforms) == {}


def test_families_are_asked_and_not_told_apart() -> None:
    """No file outside of ``families`` asks whether something is of a class of a family, or lists mechanisms."""
    classes = {
        node.name
        for path in FAMILIES.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    }

    def told_apart(path: Path) -> set[str]:
        return {
            name.id
            for call in ast.walk(parsed(path))
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "isinstance"
            for name in ast.walk(call.args[1])
            if isinstance(name, ast.Name) and name.id in classes
        }

    def listed(path: Path) -> set[str]:
        names = set(mechanism_names()) - {
            "identity",
            "metric",
            "block",
            "bloom",
            "levels",
            "pairs",
        }  # words of other things, too
        return {
            element.value
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
            for element in (node.keys if isinstance(node, ast.Dict) else node.elts)
            if isinstance(element, ast.Constant) and element.value in names
        }

    outside = [path for path in MODULES if not path.is_relative_to(FAMILIES)]
    assert offenders(told_apart, outside) == {}
    registry = ROOT / "schemas" / "uldp" / "schemas" / "specs" / "families.py"
    assert offenders(listed, [path for path in outside if path != registry]) == {}


def test_kinds_of_domain_are_asked_and_not_told_apart() -> None:
    """No file outside of ``kinds`` and of families asks which kind a domain is of: by type, by name, or by its key."""
    classes, names = {kind.__name__ for kind in KINDS.values()}, set(KINDS)

    def asks(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name("isinstance"), args=[_, asked]):
                return any(isinstance(each, ast.Name) and each.id in classes for each in ast.walk(asked))
            case ast.Compare(left, _, [right]):
                of_kind = any(word in ast.unparse(each) for each in (left, right) for word in ("kind", "domain"))
                return of_kind and any(isinstance(each, ast.Constant) and each.value in names for each in (left, right))
            case ast.Dict(keys=keys):
                return len(names & {each.value for each in keys if isinstance(each, ast.Constant)}) > 1
            case ast.Attribute(ast.Attribute(attr="domain") | ast.Name("domain"), attr=key):
                return key in names - {"values"}
        return False

    def told_apart(path: Path) -> set[str]:
        return {f"line {node.lineno}" for node in ast.walk(parsed(path)) if isinstance(node, ast.expr) and asks(node)}

    kinds = ROOT / "schemas" / "uldp" / "schemas" / "specs" / "kinds"
    outside = [path for path in MODULES if not (path.is_relative_to(FAMILIES) or path.is_relative_to(kinds))]
    assert offenders(told_apart, outside) == {}
    templates = [path for layer in FOLDERS for path in (ROOT / layer).rglob("*.j2")]
    assert templates
    assert not [id_of(path) for path in templates if ".domain" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("folder", [name for name in USERS if (ROOT / name).is_dir()])
def test_what_developers_run_imports_what_is_declared(folder: str) -> None:
    declared = REQUIRED.union(*EXTRAS.values())
    found = {path: undeclared(top_level(path), declared) for path in (ROOT / folder).rglob("*.py")}
    assert not {id_of(path): names for path, names in found.items() if names}


def test_every_dependency_is_imported() -> None:
    used = set[str]().union(*(top_level(path) for path in MODULES))
    provided = {name: distributions(DISTRIBUTIONS.get(name, [])) for name in used}
    assert not REQUIRED.difference(*provided.values())


def exceptions(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The names of the exception classes in a file, each with those of its bases."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            if any(re.search("(Error|Exception|Warning|Interrupt|Exit)$", base) for base in bases):
                yield node.name, bases


def test_every_error_is_a_uldp_error() -> None:
    ours = {name: bases for path in MODULES for name, bases in exceptions(path)}
    assert ours.pop("UldpError") == ["ValueError"]
    assert {name for name, bases in ours.items() if not any(base in (*ours, "UldpError") for base in bases)} == set()
