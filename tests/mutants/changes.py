"""Small changes of lines, as cosmic-ray makes them, and the choice of those of one night."""

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import ndiff
from functools import cache
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

#: Operators for which another is written by mistake; cosmic-ray also has pairs that no hand confuses.
_CONFUSED = {
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mul": ("Div", "Add"),
    "Div": ("Mul", "FloorDiv"),
    "FloorDiv": ("Div", "Mul"),
    "Mod": ("FloorDiv",),
    "Pow": ("Mul",),
    "BitAnd": ("BitOr",),
    "BitOr": ("BitAnd",),
    "BitXor": ("BitOr",),
    "LShift": ("RShift",),
    "RShift": ("LShift",),
    "Eq": ("NotEq", "LtE", "GtE"),
    "NotEq": ("Eq", "Lt", "Gt"),
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}

#: Where a change is: the line, counted from 1, and the column.
Place = tuple[int, int]


@dataclass(frozen=True)
class Change:
    """A change of one file.

    Attributes:
        file: The path of the file from the root of the project.
        line: The line that changes first, counted from 1.
        before: The lines that change, without the space around them.
        after: These lines after the change.
        source: The whole file after the change.
    """

    file: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n- {self.before}\n+ {self.after}"


def chosen(root: Path, files: Iterable[str], n: int, seed: str) -> list[Change]:
    """Choose n changes at random, or fewer if there are no more: at most one of each place.

    Args:
        root: The root of the project.
        files: Modules, from ``root``.
        n: How many changes to choose.
        seed: What decides the choice, as a date.
    """
    at_random = random.Random(seed)
    all_places = [(file, place) for file in sorted(files) for place in sorted(places(root / file))]
    at_random.shuffle(all_places)
    found = (next(changes(root, file, place, at_random), None) for file, place in all_places)
    return list(islice(filter(None, found), n))


@cache
def places(path: Path) -> Mapping[Place, Sequence[tuple[str, int]]]:
    """Return what cosmic-ray can do at each place of a file: the name of an operator, and which of its occurrences."""
    found: defaultdict[Place, list[tuple[str, int]]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    for name in operator_names():
        operator = get_operator(name)
        _, *confused = name.split("_")
        if operator.arguments() or (len(confused) == 2 and confused[1] not in _CONFUSED.get(confused[0], ())):
            continue
        positions = (start for node in nodes for start, _ in operator().mutation_positions(node))
        for occurrence, place in enumerate(positions):
            found[place].append((name, occurrence))
    return found


def changes(root: Path, file: str, place: Place, at_random: random.Random) -> Iterator[Change]:
    """Yield the changes at a place that can alter what the file does, in a random order."""
    source = (root / file).read_text(encoding="utf-8")
    ways = list(places(root / file)[place])
    at_random.shuffle(ways)
    for name, occurrence in ways:
        changed = mutate_code(source, get_operator(name)(), occurrence)
        if changed is not None and _meaning(changed) not in (None, _meaning(source)):
            yield Change(file, place[0], *_changed_lines(source, changed), changed)


def _changed_lines(source: str, changed: str) -> tuple[str, str]:
    lines = list(ndiff(source.splitlines(), changed.splitlines()))
    before, after = ([line[2:].strip() for line in lines if line.startswith(sign)] for sign in ("- ", "+ "))
    return " ".join(before), re.sub(r"(?<=[(\[]) ", "", " ".join(after))  # cosmic-ray leaves a space before a number


def _meaning(source: str) -> str | None:
    """Return what a file does, without what no test can ask for; None if it is no Python."""
    try:
        return ast.dump(_Untold().visit(ast.parse(source)))
    except SyntaxError:
        return None


class _Untold(ast.NodeTransformer):
    """Drops what no test can or should ask for.

    Those are annotations, and whether an argument is named; decorators, as of a cache; the keywords ``copy`` and
    ``strict``, which alter no result; and numbers of named constants, which a test could only repeat. Of the sizes in
    ``reshape``, all below 0 mean the same.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list, node.returns = [], None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.args, node.posonlyargs, node.kwonlyargs = [*node.posonlyargs, *node.args, *node.kwonlyargs], [], []
        node.defaults, node.kw_defaults = [*node.defaults, *filter(None, node.kw_defaults)], []
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        names = [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        of_numbers = not any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(node.value))
        if of_numbers and names and all(name.isupper() for name in names):
            node.value = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            node.args = [ast.Constant(-1) if isinstance(each, ast.UnaryOp) else each for each in node.args]
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        return None if node.arg in ("strict", "copy") else self.generic_visit(node)


def statement(source: str, line: int) -> range:
    """Return the lines of the innermost statement around a line; of a compound one, those above its body."""

    def spans(node: ast.AST) -> Iterator[range]:
        for each in ast.walk(node):
            if isinstance(each, ast.stmt):
                body = getattr(each, "body", None)
                end = body[0].lineno - 1 if body else each.end_lineno
                yield range(each.lineno, max(each.lineno, end or 0) + 1)

    return min((span for span in spans(ast.parse(source)) if line in span), key=len, default=range(line, line + 1))
