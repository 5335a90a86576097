"""Change lines of the product, and see if a quick test fails: ``python -m tests.mutants [PACKAGE...] [--date DATE]``.

The date decides which 200 lines change. Each change that no test notices is printed; one that is not in
``explained.txt`` makes the exit code 1. Files change in a copy in ``build/mutants``, never in the tree itself.
"""

import argparse
import ast
import datetime
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.changes import Change, chosen, statement
from tests.mutants.explained import FILE, entry, explained
from tests.mutants.runs import Covering, cover, forked, load, passes, prepare

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutants"
FOLDERS = ("schemas", "mechanisms", "collector", "transforms", "pipelines")
#: A change gets tests that take so many seconds together, and as many times longer before it counts as endless.
SECONDS = 20.0
PATIENCE = 5


@dataclass(frozen=True)
class Package:
    """A package of the product, or the part of it that changes.

    Attributes:
        sources: Files and folders of the product.
        tests: The tests whose quick ones must notice a change.
        share: How many lines of it change in a night.
    """

    sources: Sequence[str]
    tests: Sequence[str]
    share: int

    def files(self) -> list[str]:
        """Return the modules, from the root of the project."""
        paths = (path for source in self.sources for path in (ROOT / source, *(ROOT / source).rglob("*.py")))
        return [str(path.relative_to(ROOT)) for path in paths if path.suffix == ".py"]


_CORE = ("decoders", "estimators", "inference", "kernels", "protocol")
_STEPS = ("count", "decode", "deduplicate", "fixed", "limit_senders", "panes", "remembered", "seal", "slide", "windows")
#: From the lowest layer to the highest: what is below a package stays loaded while its lines change.
PACKAGES = {
    "mechanisms": Package(
        [*(f"mechanisms/uldp/mechanisms/{folder}" for folder in _CORE), "mechanisms/uldp/mechanisms/families/block"],
        ["tests/mechanisms"],
        75,
    ),
    "collector": Package(["collector/uldp"], ["tests/collector"], 75),
    "transforms": Package(
        [
            *(f"transforms/uldp/transforms/{step}.py" for step in _STEPS),
            "transforms/uldp/transforms/io/publish_times.py",
        ],
        [
            *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/transforms").glob("test_*.py")),
            "tests/transforms/io/test_publish_times.py",
        ],
        50,
    ),
}


def main() -> int:
    """Run the changes of a date; return 1 if a test should have noticed one of them, and 0 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="packages to change; all if none is named")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    options = parser.parse_args()
    if unknown := set(options.packages) - set(PACKAGES):
        parser.error(f"no package is {', '.join(sorted(unknown))}; name some of {', '.join(PACKAGES)}")
    packages = {name: package for name, package in PACKAGES.items() if name in (options.packages or PACKAGES)}
    tree = copied()
    prepare(tree, FOLDERS)
    reasons = explained(FILE.read_text(encoding="utf-8"))
    outcomes: Counter[str] = Counter()
    for name, package in packages.items():
        load([tree / folder for folder in FOLDERS[: FOLDERS.index(name)]])
        covered = covering(package, name)
        for change in chosen(tree, package.files(), package.share, f"{options.date} {name}"):
            start = time.monotonic()
            outcome = tried(change, tree, covered)
            if outcome == "survived" and entry(change) in reasons:
                outcome = "explained"
            outcomes[outcome] += 1
            print(f"{outcome:9} {time.monotonic() - start:5.1f} s {change}", flush=True)
    print(
        f"{outcomes.total()} changes of {options.date}:", ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items())
    )
    return 1 if outcomes["survived"] else 0


def copied() -> Path:
    """Copy the files that Git knows, as they are now."""
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for file in listed.stdout.split("\0"):
        if (ROOT / file).is_file():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, tree / file)
    return tree


def covering(package: Package, name: str) -> Covering:
    """Run the quick tests of a package, and return which of them run which lines.

    Raises:
        RuntimeError: if one fails without a change.
    """
    found, log = BUILD / f"{name}.covering", BUILD / f"{name}.log"
    if code := forked(lambda: cover(package.tests, package.files(), found), log, None):
        raise RuntimeError(f"{package.tests} fail without a change, with exit code {code}: see {log}")
    return Covering(*ast.literal_eval(found.read_text(encoding="utf-8")))


def tried(change: Change, tree: Path, covering: Covering) -> str:
    """Run the tests that a change should fail, with it: whether it was killed, survived, or never ended."""
    path = tree / change.file
    before = path.read_text(encoding="utf-8")
    tests = covering.tests(change.file, statement(before, change.line), SECONDS)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_text(change.source, encoding="utf-8")
    try:
        code = forked(lambda: passes(tests), BUILD / "last.log", SECONDS * PATIENCE)
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=times)  # so that Python finds the file that it has compiled before
    return {None: "endless", 0: "survived"}.get(code, "killed")


if __name__ == "__main__":
    raise SystemExit(main())
