"""What commands print, and what they read before they start."""

import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uldp.schemas.errors import DataError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import printable

if TYPE_CHECKING:
    from uldp.pipelines.jobs.spec_folder import SpecFolder


def say(text: str, *, err: bool = False) -> None:
    """Print lines; all output passes through here, because labels, names of files and ids in it may be hostile."""
    if not text.replace("\n", "").isprintable():
        text = "\n".join(map(printable, text.split("\n")))
    click.echo(text, err=err)


def say_each(texts: Iterable[str], *, err: bool = False) -> None:
    """Print texts as ``say`` does, a hundred at a time: of 25,000 windows, one by one takes half a second."""
    left = iter(texts)
    while some := list(islice(left, 100)):
        say("\n".join(some), err=err)


def show_log(module: str, level: int) -> None:
    """Print what a module, or the modules of a package, log from a level on, each as a line on stderr."""
    logger = logging.getLogger(module)
    logger.setLevel(min(level, logger.getEffectiveLevel()))
    logger.handlers, logger.propagate = [logging.StreamHandler()], False


def files_below() -> Path | None:
    """Return the folder of ``uldp --files-below``, below which files may be that specs name."""
    return click.get_current_context().find_object(Path)


def load(paths: tuple[Path, ...]) -> list[CollectionSpec]:
    """Load the specs that a command names."""
    return [CollectionSpec.load(path, below=files_below()) for path in paths]


def load_or_follow(paths: tuple[Path, ...], folder: str | None, out: str | None) -> "list[CollectionSpec] | SpecFolder":
    """Load the specs, or return the folder to follow, of ``out``; UsageError unless exactly one of both is named."""
    from uldp.pipelines.jobs.spec_folder import SpecFolder

    if bool(paths) == (folder is not None):
        raise click.UsageError("name the specs: by --spec FILE, which may be repeated, or by --specs DIR")
    return load(paths) if folder is None else SpecFolder(folder, out, files_below())


def summarize(out: str, private: str | None) -> None:
    """Print what became of all reports of a job that has ended."""
    from uldp.pipelines.jobs.progress import summary
    from uldp.transforms.io.folders import is_remote

    if is_remote(out):
        say(f"{out}: written; copy it to this machine to show it")
        return
    damaged: list[DataError] = []
    here = None if private is None or is_remote(private) else Path(private)
    say(summary(Path(out), damaged.append, private=here))
    if private is not None and here is None:
        say(f"{private}: holds the rejected reports; the total leaves out those that name no window")
    name_damaged(damaged)


def name_damaged(damaged: Sequence[DataError]) -> None:
    """Fail if files are damaged, when all else has been shown."""
    if damaged:
        raise DataError("\n".join(printable(str(error)) for error in damaged))
