"""The command for developers of clients: decode."""

from pathlib import Path

import click

from uldp.pipelines.commands.output import load, say
from uldp.pipelines.options import SPEC


@click.command()
@click.argument("source", metavar="HEX|FILE")
@click.option("--spec", "specs", multiple=True, type=SPEC, help="A spec of the collector; may be repeated.")
@click.option(
    "--first", default=10, show_default=True, type=click.IntRange(0), help="Number of reports to show, before counts."
)
def decode(source: str, specs: tuple[Path, ...], first: int) -> None:
    """Show how a collector reads messages, and whether it counts or rejects each report, and why.

    HEX is a message in hexadecimal digits. FILE has the bytes of one message, or is an Avro file of messages, or a
    directory of these. Without a spec, the command reads the fields, and does not judge the payload. Only a message of
    an Avro file has a publish time, by which its age is judged. The exit code is 1 if a report would be rejected.

    Example: uldp decode --spec examples/manhattan/spec.yaml stream/000000000000.avro --first 3
    """
    from uldp.pipelines.clients.inspection import Inspection
    from uldp.pipelines.clients.sent import sent_messages
    from uldp.pipelines.results.text import number_of

    inspection = Inspection(load(specs))
    for line in inspection.lines(sent_messages(source), first):
        say(line)
    if inspection.reports != 1:
        verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(inspection.verdicts.items()))
        # Without a spec, a batch is not taken apart.
        noun = "report" if specs else "message"
        say(f"in all: {number_of(inspection.reports, noun)}{': ' if verdicts else ''}{verdicts}")
    if inspection.rejected:
        raise ValueError(f"a collector would reject {number_of(inspection.rejected, 'report')}")
