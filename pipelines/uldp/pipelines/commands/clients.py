"""The commands for developers of clients: device-table, vectors, decode and verify."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from uldp.pipelines.commands.output import load, say, say_each
from uldp.pipelines.options import REGISTRY_IDS, SPEC
from uldp.schemas.errors import DataError, RequestError


@click.command("device-table")
@click.argument("spec", type=SPEC)
@click.option("--json", "as_json", is_flag=True, help="Print the table, as one line of JSON.")
@click.option("--c", "as_c", is_flag=True, help="Print the table as a header for clients/c/uldp.h.")
def device_table(spec: Path, as_json: bool, as_c: bool) -> None:
    """Compute all numbers that a device of a spec needs, for clients in any language.

    A client that has the table needs no YAML, no exponential and none of the formulas of mechanisms. The page
    docs/device-table.md has the rule of each form. Without an option, the command says what is in the table.

    Example: uldp device-table examples/manhattan/spec.yaml --json > manhattan.json
    """
    from uldp.mechanisms.devices.table import device_table as table_of
    from uldp.pipelines.clients.c_table import c_name, c_table

    if as_json and as_c:
        raise RequestError("--json and --c are two forms of one table; give one of them")

    (loaded,) = load((spec,))
    try:
        table = table_of(loaded)
        lines = list(c_table(table, c_name(loaded.collection)) if as_c else table_lines(table))
    except ValueError as error:
        raise RequestError(f"{spec}: {error}") from None
    say_each([json.dumps(table, separators=(",", ":"))] if as_json else lines)


@click.command("vectors")
@click.argument("spec", type=SPEC)
def write_vectors(spec: Path) -> None:
    """Print what devices of a spec send by known draws, as one line of JSON, so that a client can be compared.

    The line has the table of the spec, and for each device what it holds and its reports: the draws in their order, the
    payload and the message. The page docs/client/testing.md says how to read it. The same spec gives the same line.

    Example: uldp vectors examples/manhattan/spec.yaml > vectors.jsonl
    """
    from uldp.pipelines.clients.vectors import vectors

    (loaded,) = load((spec,))
    try:
        found = vectors(loaded)
    except ValueError as error:
        raise RequestError(f"{spec}: {error}") from None
    say(json.dumps(found, separators=(",", ":")))


@click.command()
@click.argument("source", metavar="HEX|FILE")
@click.option("--spec", "specs", multiple=True, type=SPEC, help="A spec of the collector; may be repeated.")
@click.option(
    "--first", default=10, show_default=True, type=click.IntRange(0), help="Number of reports to show, before counts."
)
@click.option(
    "--published",
    metavar="MS",
    type=click.IntRange(0),
    help="When the stream accepted a message of HEX or of a FILE of bytes, in milliseconds since 1970.",
)
@REGISTRY_IDS
def decode(
    source: str, specs: tuple[Path, ...], first: int, published: int | None, registry_ids: Mapping[int, str] | None
) -> None:
    """Show how a collector reads messages, and whether it counts or rejects each report, and why.

    HEX is a message in hexadecimal digits. FILE has the bytes of one message, or is an Avro file of messages or of
    rejected reports, or a directory of these. Without a spec, the command reads the fields, and does not judge the
    payload. A message of an Avro file has a publish time, by which its age is judged; of another one, give it by
    --published, or its age is not judged. The exit code is 1 if a report would be rejected.

    Example: uldp decode --spec examples/manhattan/spec.yaml stream/000000000000.avro --first 3
    """
    from uldp.pipelines.clients.inspection import Inspection
    from uldp.pipelines.clients.sent import UNKNOWN, sent_messages
    from uldp.pipelines.results.text import number_of

    inspection = Inspection(load(specs), registry_ids)
    for line in inspection.lines(sent_messages(source, UNKNOWN if published is None else published), first):
        say(line)
    if inspection.reports != 1:
        verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(inspection.verdicts.items()))
        # Without a spec, a batch is not taken apart.
        noun = "report" if specs else "message"
        say(f"in all: {number_of(inspection.reports, noun)}{': ' if verdicts else ''}{verdicts}")
    if inspection.rejected:
        raise DataError(f"a collector would reject {number_of(inspection.rejected, 'report')}")


@click.command()
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--spec", required=True, type=SPEC, help="The spec of the reports.")
@click.option(
    "--value",
    "values",
    required=True,
    multiple=True,
    metavar="VALUE",
    help="The value that all devices hold: a label, an index or a number; of a record, ATTRIBUTE=VALUE for each.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="The tag that hides it; of a record, ATTRIBUTE=TAG.")
@click.option("--level", metavar="LEVEL", help="The level of privacy of the devices, if the spec has levels.")
@click.option(
    "--by", multiple=True, metavar="NAME=VALUE", help="A public attribute of the devices, if the spec has by."
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="ARCHIVE",
    help="Reports of another value, as ARCHIVE, for a lower bound on epsilon.",
)
@click.option("--against-value", "against_values", multiple=True, metavar="VALUE", help="The value of --against.")
@click.option("--against-tag", "against_tags", multiple=True, metavar="TAG", help="The tag that hides it.")
@REGISTRY_IDS
def verify(
    archive: Path,
    spec: Path,
    values: tuple[str, ...],
    tags: tuple[str, ...],
    level: str | None,
    by: tuple[str, ...],
    against: Path | None,
    against_values: tuple[str, ...],
    against_tags: tuple[str, ...],
    registry_ids: Mapping[int, str] | None,
) -> None:
    """Test whether a client's reports of one value follow the mechanism of a spec, and keep its promise.

    ARCHIVE is an Avro file of messages, or a directory of these, with 1,000 reports or more of devices that all hold
    one value. The exit code is 1 if they do not follow the mechanism. A right client fails in one of about 100,000
    runs. With --against, the command also says what epsilon is at least, with 95 %, and the exit code is 1 if that is
    more than promised; a right client fails this in 1 of 20 runs at the most. If the spec has lasting_epsilon, each
    message names its device in the attribute uldp-sender, and the command tests the responses that devices keep.

    Example: uldp verify --spec places.yaml --value flat --tag home stream
    """
    from uldp.pipelines.clients.verification import LEVEL, Given
    from uldp.pipelines.clients.verification import verify as test

    (loaded,) = load((spec,))
    if against is None and (against_values or against_tags):
        raise RequestError("--against-value and --against-tag are of the archive --against; add it")
    other = None if against is None else Given(str(against), against_values, against_tags)
    found = test(loaded, Given(str(archive), values, tags), other, level, registry_ids, by)
    for tested in found.tested:
        say(f"{tested.sent.path}: {tested.sent.text}")
        for check in tested.checks:
            say(f"  {check.name}: {check.statistic}, p-value {check.p_value:.2g}")
    for loss in found.losses:
        say(f"epsilon of {loss.of} is at least {loss.at_least}, promised {loss.promise}")
    for loss in found.losses:
        if loss.broken:
            raise DataError(
                f"the client breaks the promise of {loaded.collection}: epsilon of {loss.of} is at least"
                f" {loss.at_least}, and {loss.promise} is promised; {loss.shares}"
            )
    if found.failed is not None:
        raise DataError(
            f"the client does not follow {loaded.mechanism.name}: {found.failed.finding}; p-value of all tests"
            f" {found.p_value:.2g}, below {LEVEL:.0e}"
        )
    say(f"the reports follow {loaded.mechanism.name}: p-value of all tests {found.p_value:.2g}, not below {LEVEL:.0e}")


def table_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about a table of ``uldp.mechanisms.devices.table``, and one about each of its parts."""
    size = len(json.dumps(table, separators=(",", ":")))
    yield f"{table['collection']} version {table['version']}: table {table['digest']}, {size:,} bytes"
    for column in table["columns"]:
        tags = f", tags {', '.join(column['tags'])}" if column["tags"] else ""
        yield f"  {'holds':<11} {column['name'] or 'one variable'}: {column['kind']}{tags}"
    yield f"  {'encoding':<11} {', '.join(dict.fromkeys(_forms(table['encoding'])))}"
    yield f"  {'mechanism':<11} {', '.join(dict.fromkeys(_forms(table['mechanism'])))}"
    time = "exact" if table["exact_time"] else f"rounded down to {table['slice_ms']:,} ms"
    yield f"  {'time':<11} {time}"
    if table["kept"]:
        yield f"  {'ledger':<11} keeps a response for each symbol"
    if (budget := table["budget"]) is not None:
        yield f"  {'ledger':<11} spends at most epsilon {budget['epsilon']:g} in {budget['every_ms']:,} ms"


def _forms(node: Any) -> Iterator[str]:
    """Yield the names of all forms in a part of a table."""
    if isinstance(node, Mapping):
        if "form" in node:
            yield node["form"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _forms(each)
