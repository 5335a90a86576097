"""The command line: ``uldp``. Parses, calls, and turns every error that a user can mend into one line.

Beam is imported by the commands that run it, so that ``--help`` and ``check`` answer at once.
"""

import json
import logging
import os
import re
import sys
import warnings
from collections import Counter
from itertools import takewhile
from pathlib import Path

import click

from uldp.pipelines.commands import (
    advise,
    ask,
    audit,
    clients,
    collect,
    init,
    jobs,
    merge,
    results,
    serve,
    simulation,
    status,
    zones,
)
from uldp.pipelines.commands.output import say
from uldp.pipelines.options import FOLDER
from uldp.pipelines.process import Output, watched_output
from uldp.schemas.errors import UldpError
from uldp.schemas.extras import install
from uldp.schemas.file_errors import file_error_text


class OnceGroup(click.Group):
    """A group that takes each option once, as its commands do, unless it may be repeated."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the group's own options; click.UsageError if one with a single value is given twice."""
        _refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; click.UsageError if there is none, or an option is given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            own = command.context_class(command, parent=ctx, info_name=name, **command.context_settings)
            _refuse_repeated(command, own, rest)
        return name, command, rest


def _refuse_repeated(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    _, _, order = command.make_parser(ctx).parse_args(list(args))
    for parameter, times in Counter(order).items():
        single = isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
        if single and times > 1:
            raise click.UsageError(f"{parameter.opts[-1]} is given {times} times; give it once", ctx)


#: An error that a user can mend, as the traceback of a worker ends with it.
_OURS = re.compile(r"uldp\.[\w.]+: (.+)")


@click.group(cls=OnceGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-v", "--verbose", is_flag=True, help="Show Beam's log, and a traceback with each error.")
@click.option(
    "--files-below",
    type=FOLDER,
    help="The folder below which files may be that specs name.  [default: the folder of each spec]",
)
@click.option("--json", "as_json", is_flag=True, help="Print errors as one JSON object on one line.")
@click.version_option(package_name="uldp-stream")
def cli(verbose: bool, files_below: Path | None, as_json: bool) -> None:
    """Collect statistics from devices under (utility-optimized) local differential privacy.

    \b
    uldp simulate examples/manhattan/spec.yaml --truth examples/manhattan/truth.csv --users 100000 --to stream
    uldp backfill --spec examples/manhattan/spec.yaml --from stream --to results
    uldp show results
    """  # noqa: D301 (the escape is click's mark for lines that stay as they are)
    click.get_current_context().obj = files_below
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    if not verbose:  # what fails is said once, by main
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        warnings.simplefilter("ignore")


for module in (advise, ask, audit, clients, collect, init, jobs, merge, results, serve, simulation, status, zones):
    for command in vars(module).values():
        if isinstance(command, click.Command):
            cli.add_command(command)


def main() -> None:
    """Run the command line; a user's error is one line and exit code 1, wrong usage is exit code 2.

    The exit code is 141, as a shell gives it, if the program that reads the output has closed it.
    """
    with watched_output() as output:
        try:
            _run(bool({"-v", "--verbose"} & _own_options()), output)
        except BaseException:
            if not output.closed:
                raise
    if output.closed:
        sys.exit(141)


def _run(verbose: bool, output: Output) -> None:
    try:
        cli.main(prog_name="uldp", standalone_mode=False)
        output.check()
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "uldp"
        message = error.format_message().rstrip(".")
        _fail(f"{message} (see {command} --help)", 2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("stopped; the files that were written remain; run the same command again", 130)
    except ModuleNotFoundError as error:
        if verbose or (error.name or "").partition(".")[0] not in ("apache_beam", "grpc"):
            raise
        _fail(f"this command needs Apache Beam; install it: {install('beam')}", 1)
    except (UldpError, OSError) as error:  # what a user can mend, and the file system
        if verbose:
            raise
        _fail(file_error_text(error) if isinstance(error, OSError) else str(error), 1)
    except Exception as error:
        if verbose:
            raise
        # A failed job says where it failed in its last line; what is above is Beam's own traceback.
        last = (str(error).strip() or type(error).__name__).splitlines()[-1]
        ours = _OURS.fullmatch(last)
        _fail(ours[1] if ours else f"{last}; uldp -v {' '.join(sys.argv[1:2])} ... shows where", 1)


def _own_options() -> set[str]:
    """Return the arguments before the command: they are wanted also if they cannot be parsed."""
    return set(takewhile(lambda argument: argument not in cli.commands, sys.argv[1:]))


def _fail(message: str, code: int) -> None:
    if "--json" in _own_options():
        say(json.dumps({"errors": message.splitlines(), "exit_code": code}), err=True)
        sys.exit(code)
    for line in message.splitlines():
        say(f"error: {line}", err=True)
    sys.exit(code)
