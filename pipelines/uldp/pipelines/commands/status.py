"""The commands for who operates a job: status, rejected and late."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uldp.pipelines.commands.output import load, name_damaged, say, say_each
from uldp.pipelines.options import FOLDER, SPEC
from uldp.schemas.errors import DataError
from uldp.schemas.specs.mistakes import printable

if TYPE_CHECKING:
    from uldp.pipelines.results.files import Damaged, ResultsError
    from uldp.pipelines.status.uncounted import Group
    from uldp.schemas.specs.collection import CollectionSpec

_PRIVATE = click.option(
    "--private", type=FOLDER, metavar="DIR", help="The job's --private-to, if it had one.  [default: OUT]"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
_SPECS = click.option(
    "--spec", "specs", multiple=True, type=SPEC, help="A spec to read samples by.  [default: those of OUT]"
)


@click.command()
@click.argument("out", type=FOLDER)
@_PRIVATE
@_JSON
def status(out: Path, private: Path | None, as_json: bool) -> None:
    """Say what runs, how far it is, where reports went, and what the results take on disk.

    A job of another machine is not seen to run. The position is that of a job of a local stream. If something is
    damaged, missing or given up, the command names it at the end, and its exit code is 1.

    Example: uldp status results
    """
    from uldp.pipelines.status.status import Status

    found = Status.of(out, private)
    say_each([json.dumps(found.to_json())] if as_json else found.lines())
    if found.faults:
        raise DataError("\n".join(map(printable, found.faults)))


@click.command()
@click.argument("out", type=FOLDER)
@_PRIVATE
@_SPECS
@_JSON
def rejected(out: Path, private: Path | None, specs: tuple[Path, ...], as_json: bool) -> None:
    """Say of rejected reports, by reason, how many, when, from whom, and what one looks like.

    Senders have digests, which the flag busy_sender names alike. uldp decode OUT/rejected reads all that is stored.

    Example: uldp rejected results
    """
    from uldp.pipelines.results.records import rejected_in
    from uldp.pipelines.status.uncounted import groups_of_rejected

    _show(out, private, load(specs), as_json, "rejected", lambda *args: groups_of_rejected(rejected_in(*args)))


@click.command()
@click.argument("out", type=FOLDER)
@_PRIVATE
@_SPECS
@_JSON
def late(out: Path, private: Path | None, specs: tuple[Path, ...], as_json: bool) -> None:
    """Say of late reports, by collection, how many, when they came, from whom, and what one looks like.

    To count them, run uldp backfill --from OUT/late into a new directory, and uldp merge.

    Example: uldp late results
    """
    from uldp.pipelines.status.uncounted import groups_of_late, late_in

    _show(out, private, load(specs), as_json, "late", lambda *args: groups_of_late(late_in(*args)))


def _without_spec(out: Path, groups: "list[Group]") -> "Iterable[ResultsError]":
    """Yield an error for each collection and version of late reports of which the job's spec is gone."""
    from uldp.pipelines.results.specs import KeptSpecs, missing_spec

    kept = KeptSpecs(out) if (out / "specs").is_dir() else {}
    known = {f"{collection} v{version}" for collection, version in kept}
    yield from (missing_spec(group.name.replace(" ", "-")) for group in groups if kept and group.name not in known)


def _show(
    out: Path,
    private: Path | None,
    specs: "Sequence[CollectionSpec]",
    as_json: bool,
    name: str,
    read: "Callable[[Path, Damaged], list[Group]]",
) -> None:
    """Show the groups of a folder of reports, and name at the end what is damaged or missing."""
    from uldp.pipelines.results.files import ResultsError, check_directory
    from uldp.pipelines.results.folder import ResultsFolder
    from uldp.pipelines.results.prune import lost_files
    from uldp.pipelines.status.uncounted import digests_of, group_json, group_lines
    from uldp.transforms.io.folders import Kind, kind_of, mismatch

    damaged: list[ResultsError] = []
    folder = (private or out) / name
    lost = list(lost_files(out, folder))
    groups = read(folder, damaged.append)
    check_directory(out)
    check_directory(private or out)
    known: Any = specs or (list(ResultsFolder(out).specs.values()) if (out / "specs").is_dir() else [])
    digests = digests_of(out, private)
    for group in groups:
        of = group, known, digests
        say_each([json.dumps(group_json(*of))] if as_json else group_lines(*of))
    if not groups:
        if kind_of(private or out) is not Kind.RESULTS:
            raise ResultsError(mismatch(private or out, Kind.RESULTS))
        say(f"{private or out}: holds no {name} reports", err=as_json)
    name_damaged([*damaged, *lost, *(_without_spec(out, groups) if name == "late" and not specs else [])])
