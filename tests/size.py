"""What one head has to hold: lines, words, small modules and checks of kinds. Run it by ``python -m tests.size``.

A check of a kind is an ``isinstance``, an ``issubclass`` or a class pattern, outside of the families, that asks which
kind of mechanism, decoder, encoding, law or domain a value is. A method of these classes answers better.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("schemas", "mechanisms", "collector", "transforms", "pipelines")
#: The classes whose subclasses are kinds.
ROOTS = {"Mechanism", "Decoder", "Encoding", "Law", "Kind"}
#: A module with fewer lines is small.
SMALL = 61


def python_files(folder: str) -> list[Path]:
    """Return the modules below a folder of the project."""
    return [path for path in sorted((ROOT / folder).rglob("*.py")) if "build" not in path.relative_to(ROOT).parts]


def lines(paths: Iterable[Path]) -> int:
    """Return the number of lines of files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def words() -> int:
    """Return the number of words in the pages, but for the decisions."""
    folders = [ROOT / name for name in ("docs", "clients", "benchmarks", "deploy", "examples", ".github")]
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    kept = [page for page in pages if not {"decisions", "node_modules"} & set(page.parts)]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in kept)


def kind_checks() -> list[str]:
    """Return the place and the class of each check of a kind."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for name in PACKAGES for path in python_files(name)}
    bases: dict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] |= {name for base in node.bases for name in _names(base)}
    kinds = set(ROOTS)
    while more := {name for name, of in bases.items() if of & kinds} - kinds:
        kinds |= more
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, tree in trees.items()
        if "families" not in path.parts
        for line, name in _checked(tree)
        if name in kinds
    ]


def _checked(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            yield from ((node.lineno, name) for name in _names(node.args[1]))
        elif isinstance(node, ast.MatchClass):
            yield from ((node.cls.lineno, name) for name in _names(node.cls))


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names of classes in an expression, without their parameters."""
    if isinstance(node, ast.Subscript):
        yield from _names(node.value)
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id
    else:
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def table() -> str:
    """Return the figures as a table."""
    of_packages = {name: python_files(name) for name in PACKAGES}
    every = [path for paths in of_packages.values() for path in paths]
    rows = [
        *((f"lines of {name}", lines(paths)) for name, paths in of_packages.items()),
        ("lines of the five packages", lines(every)),
        ("lines of tests", lines(python_files("tests"))),
        ("words of pages, but decisions", words()),
        ("checks of kinds outside of families", len(kind_checks())),
        (f"modules of 2 to {SMALL - 1} lines", sum(1 < lines([path]) < SMALL for path in every)),
    ]
    return "\n".join(["| figure | now |", "| --- | ---: |", *(f"| {name} | {number:,} |" for name, number in rows)])


if __name__ == "__main__":
    sys.stdout.write("\n".join([table(), "", *kind_checks(), ""]))
