"""Each damage of each file under each command: the outcome is exact, or the exit code is 1 and the file is named.

The files are those that jobs and commands have left in ``tests.faults.place``, so that a new kind of file joins by
itself. `make test` damages one file of each kind once, by one command; `make nightly` runs all, and its last lines say
how many cells there were.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults.damages import DAMAGES
from tests.faults.place import (
    Place,
    Ran,
    compact,
    prepare,
    run_backfill,
    run_stream_apart,
    run_stream_with_rows,
    state,
    uldp,
)
from uldp.pipelines.cli import cli
from uldp.pipelines.live.served import served
from uldp.pipelines.serve.api import ANSWERS
from uldp.pipelines.serve.query import Query
from uldp.schemas.errors import UldpError


class Command(NamedTuple):
    """A command, and what to compare after it.

    Attributes:
        run: Runs it.
        outcome: Returns what it has made, beside what it has printed.
        writes: Whether it changes what it reads.
        job: Whether it runs a job, which prints times. It is run with the first and the last file of each kind.
    """

    run: Callable[[Place], Ran]
    outcome: Callable[[Place], Any] = lambda place: None
    writes: bool = False
    job: bool = False


#: What a command writes that changes nothing it reads.
OUT = "out"


def _of(out: str, private: str | None = None) -> Callable[[Place], Any]:
    return lambda place: state(place / out, None if private is None else place / private)


def _text(name: str) -> Callable[[Place], str]:
    return lambda place: (place / name).read_text()


def _page(place: Place) -> str:
    """The page without the time at which it was made."""
    return re.sub(r"Made [-0-9]* [0-9:]* UTC", "", (place / "out.html").read_text(encoding="utf-8"))


def _messages_of(place: Place) -> Any:
    from uldp.transforms.io.message_files import read_messages

    return sorted(each.data for path in (place / OUT).glob("*.avro") for each in read_messages(path))


def _kept(run: Callable[[Place, str], Ran], out: str, apart: str | None = None) -> Command:
    """A command that changes files of a folder, and nothing that readers see, whatever the damage is."""

    def ran(place: Place) -> Ran:
        results = (place / (apart or out), place / out)
        before = state(*results)
        done = run(place, out)
        return Ran(done.code, str(state(*results) == before), done.err)

    return Command(ran, writes=True)


def _prune(place: Place, out: str) -> Ran:
    return uldp("prune", place / out)


def _status(place: Place, out: str, *options: str | Path) -> Ran:
    """What ``uldp status`` says of reports, without what it says of times, of the disk and of where a job goes on.

    Nor of how many panes are there, of which the newest alone count: ``uldp prune`` removes the others.
    """
    ran = uldp("status", "--json", place / out, *options)
    try:
        said = json.loads(ran.out)
    except ValueError:
        return ran
    said = {key: value for key, value in said.items() if key not in ("at", "disk", "free_bytes", "resumes_at")}
    for each in said.get("collections", ()):
        for key in ("last_pane", "panes"):
            each.pop(key, None)
    return ran._replace(out=json.dumps(said), err=ran.err + json.dumps(said.get("faults", ())))


def _serve(place: Place, out: str) -> Ran:
    """All answers of the API of ``uldp serve``; a fault in an answer is as an error of a command."""
    (each,) = served([place / out]).values()
    texts, faults = [], []
    for name, (answer, known) in ANSWERS.items():
        try:
            said = dict(answer(each, Query([], known)))
            faults += said.pop("damaged", ())
            texts.append(json.dumps(said, default=list))
        except (UldpError, OSError) as error:
            faults.append(f"{name}: {error}")
    return Ran(1 if faults else 0, "\n".join(texts), "\n".join(map(str, faults)))


def _backfill(place: Place) -> Ran:
    shutil.rmtree(place / "batch")
    return run_backfill(place)


def _stream_anew(place: Place) -> Ran:
    shutil.rmtree(place / "live")
    return run_stream_with_rows(place)


def _readers(out: str) -> Mapping[str, Command]:
    return {
        "show": Command(lambda place: uldp("show", "--json", place / out)),
        "ask": Command(lambda place: uldp("ask", place / out, "--json")),
        "export": Command(lambda place: uldp("export", place / out, "--to", place / "out.csv"), _text("out.csv")),
        "report": Command(lambda place: uldp("report", place / out, "--out", place / "out.html"), _page),
        "serve": Command(lambda place: _serve(place, out)),
        "status": Command(lambda place: _status(place, out)),
    }


def _audit(out: str, *private: str) -> Command:
    def ran(place: Place) -> Ran:
        options = [part for each in private for part in ("--private", place / each)]
        return uldp("audit", place / "stream", place / out, *options)

    return Command(ran)


def _merge(*folders: str, private: Sequence[str] = ()) -> Command:
    def ran(place: Place) -> Ran:
        options = [part for each in private for part in ("--private", place / each)]
        return uldp("merge", *(place / each for each in folders), "--to", place / OUT, *options)

    return Command(ran, _of(OUT))


def _kept_records(out: str, private: str) -> Mapping[str, Command]:
    def said(command: str) -> Command:
        return Command(lambda place: uldp(command, place / out, "--private", place / private))

    return {
        "rejected": said("rejected"),
        "late": said("late"),
        "replay": Command(
            lambda place: uldp("replay", place / private / "rejected", "--to", place / OUT), _messages_of
        ),
    }


def _rows_of_duckdb(place: Place) -> Any:
    import duckdb

    with duckdb.connect(str(place / "tables" / "rows.duckdb")) as connection:
        return sorted(map(repr, connection.execute("SELECT * FROM estimates").fetchall()))


def _rows_of_parquet(place: Place) -> Any:
    import duckdb

    files = f"{place / 'rows'}/*/*/*.parquet"
    return sorted(map(repr, duckdb.connect().execute(f"SELECT * FROM '{files}'").fetchall()))


RESUME = Command(run_stream_with_rows, _of("live"), writes=True, job=True)
RESUME_APART = Command(run_stream_apart, _of("apart", "private"), writes=True, job=True)
#: What reads a stream.
OF_STREAMS: Mapping[str, Command] = {
    "audit": _audit("live"),
    "status": Command(lambda place: _status(place, "live")),
    "decode": Command(lambda place: uldp("decode", "--first", "0", place / "stream")),
    "prune": Command(lambda place: uldp("prune", place / "live", "--stream", place / "stream"), writes=True),
    "stream": Command(_stream_anew, _of("live"), writes=True, job=True),
    "resume": RESUME,
    "backfill": Command(_backfill, _of("batch"), writes=True, job=True),
}
#: What reads a stream of one value.
OF_CLIENTS: Mapping[str, Command] = {
    "verify": Command(lambda place: uldp("verify", "--spec", place / "c.yaml", "--value", "0", place / "client"))
}
#: What reads or writes the results of a stream.
OF_RESULTS: Mapping[str, Command] = {
    **_readers("live"),
    **_kept_records("live", "live"),
    "audit": _audit("live"),
    "prune": _kept(_prune, "live"),
    "compact": _kept(compact, "live"),
    "merge": _merge("live", "batch"),
    "resume": RESUME,
    "backfill": Command(
        lambda place: run_backfill(place, "of_late", "live/late"), _of("of_late"), writes=True, job=True
    ),
}
#: What reads or writes the results of a stream whose private results are in a folder of their own.
OF_APART: Mapping[str, Command] = {
    "show": _readers("apart")["show"],
    "ask": Command(lambda place: uldp("ask", place / "apart", "--private", place / "private", "--json")),
    "status": Command(lambda place: _status(place, "apart", "--private", place / "private")),
    "audit": _audit("apart", "private"),
    "merge": _merge("apart", "batch", private=["private"]),
    "resume": RESUME_APART,
}
OF_PRIVATE: Mapping[str, Command] = {
    **{name: command for name, command in OF_APART.items() if name != "show"},
    **_kept_records("apart", "private"),
    "prune": _kept(_prune, "private", "apart"),
    "compact": _kept(compact, "private", "apart"),
}
#: What reads or writes the results of a backfill.
OF_BATCH: Mapping[str, Command] = {
    **_readers("batch"),
    **_kept_records("batch", "batch"),
    "audit": _audit("batch"),
    "prune": _kept(_prune, "batch"),
    "compact": _kept(compact, "batch"),
    "merge": _merge("live", "batch"),
    "backfill": Command(run_backfill, _of("batch"), writes=True, job=True),
}
#: What reads answers about zones.
OF_ZONES: Mapping[str, Command] = {
    "background": Command(
        lambda place: uldp("background", place / "zoned", "--to", place / OUT), _text(f"{OUT}/home.csv")
    )
}


class Folder(NamedTuple):
    """A folder of the place.

    Attributes:
        commands: The commands that read it, or write it.
        beside: The other folders that they read.
    """

    commands: Mapping[str, Command]
    beside: Sequence[str] = ()


MATRIX: Mapping[str, Folder] = {
    "stream": Folder(OF_STREAMS, ["live", "tables", "batch"]),
    "client": Folder(OF_CLIENTS),
    "live": Folder(OF_RESULTS, ["stream", "tables", "batch"]),
    "apart": Folder(OF_APART, ["stream", "private", "rows", "batch"]),
    "private": Folder(OF_PRIVATE, ["stream", "apart", "rows", "batch"]),
    "batch": Folder(OF_BATCH, ["stream", "live", "tables"]),
    "joined": Folder(
        {**_readers("joined"), "audit": _audit("joined"), "merge": _merge("joined", "batch")},
        ["stream", "batch", "tables"],
    ),
    "merged": Folder(_readers("merged")),
    "tables": Folder({"audit": _audit("live"), "resume": RESUME._replace(outcome=_rows_of_duckdb)}, ["stream", "live"]),
    "rows": Folder(
        {"audit": _audit("apart", "private"), "resume": RESUME_APART._replace(outcome=_rows_of_parquet)},
        ["stream", "apart", "private"],
    ),
    "zoned": Folder(OF_ZONES, ["hiding"]),
}
#: Commands that read neither a stream nor results, or that say what there is now; and what they read.
OTHERS = {
    "advise": "a question on the command line",
    "check": "specs",
    "collect": "specs and what devices post",
    "demo": "examples",
    "device-table": "a spec",
    "give-up": "a stream",
    "vectors": "a spec",
    "init": "answers",
    "schema": "the models of specs",
    "simulate": "a spec and a truth",
    "zones": "specs and files of places",
}
#: A stream without its mark is open, and a job waits for more of it.
ENDLESS = {("closed", damage, command) for damage in ("removed", "restored") for command in ("stream", "resume")}
#: Not exact yet: a folder of private results has no journal, which is beside the others. An audit names the file.
APART = {(damage, "replay") for damage in ("removed", "restored")}
#: A backfill without a journal is one that was killed before its end, and ``uldp status`` says so.
UNSIGNED = {("batch", "journal.jsonl", "removed", "status")}
#: Not exact yet: a job names a file that is strange to a place of rows, and goes on. An audit fails.
NAMED = {("rows", "doubled", "resume")}


Exact = Callable[[str, str], Any]


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Place]:
    """What was there earlier, and what is there now."""
    return prepare(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def exact(places: tuple[Place, Place], tmp_path_factory: pytest.TempPathFactory) -> Exact:
    """What a command prints and makes of undamaged files."""
    kept: dict[tuple[str, str], Any] = {}

    def of(folder: str, name: str) -> Any:
        if (folder, name) not in kept:
            place = places[1].copy(tmp_path_factory.mktemp(name) / "place")
            command = MATRIX[folder].commands[name]
            kept[folder, name] = _seen(command, place, command.run(place))
        return kept[folder, name]

    return of


def _seen(command: Command, place: Place, ran: Ran) -> Any:
    """Return the exit code, what a command has printed, unless it ran a job, and what it has made."""
    return ran.code, None if command.job else ran.out.replace(str(place.root), ""), command.outcome(place)


def _kind(file: str) -> str:
    """What the files of a kind have in common: their names without numbers, windows and digests."""
    return re.sub(r"[0-9]{6,}|[0-9a-f]{16,}", "", re.sub(r"[0-9]{8}T[^/]*Z\.", "", file))


def files_of(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]


def first_and_last(files: Sequence[str]) -> list[str]:
    """The first and the last file of each kind."""
    last = {_kind(file): file for file in files}
    first = {_kind(file): file for file in reversed(files)}
    return sorted({*last.values(), *first.values()})


def names_of(file: str) -> Iterator[str]:
    """The texts by which a line may name a file: its own name; its window; the kind of its records."""
    path = Path(file)
    yield path.name
    if window := re.search(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z--", file):
        yield window[0]
        year, month, day, hour, minute, _ = window.groups()
        yield f"{year}-{month}-{day}T{hour}:{minute}"
    if path.parts[0] in ("late", "rejected", "few", "ids"):
        yield path.parts[0]
    if path.parts[0] in ("counts", "estimates"):
        yield f"{path.parts[0]}: the newest pane"


class Bench:
    """A copy of a place, in which one file after the other is damaged, and is as before afterwards."""

    def __init__(self, places: tuple[Place, Place], folder: str, root: Path) -> None:
        self.earlier, self.now = places
        self.folder, self._root = folder, root
        self._names = [folder, *MATRIX[folder].beside]
        self.place = self.now.copy(root, self._names)

    def fault(self, damage: str, file: str, command: Command, exact: Any) -> str | None:
        """Damage a file and run a command; return what is wrong, if anything."""
        path, earlier = self.place / self.folder / file, self.earlier / self.folder / file
        content, written = path.read_bytes(), path.stat().st_mtime_ns
        if damage == "restored" and (not earlier.exists() or earlier.read_bytes() == content):
            return None  # it was not there, as if it were removed now, or it is as it was
        before = set(path.parent.iterdir())
        DAMAGES[damage](path, earlier)
        if damage == "restored" and path.suffix == ".json":  # of this place
            path.write_text(path.read_text().replace(str(self.earlier.root), str(self._root)))
        new = set(path.parent.iterdir()) - before
        within = f"{self.folder}/{Path(file).parts[0]}" if "/" in file else f"{self.folder}: "
        named = [*names_of(file), *(each.name for each in new), within]
        wrong = self._wrong(command, named, exact, f"{damage} {self.folder}/{file}")
        shutil.rmtree(self.place / OUT, ignore_errors=True)
        if command.writes:
            shutil.rmtree(self._root)
            self.place = self.now.copy(self._root, self._names)
            return wrong
        for each in new:
            each.unlink()
        path.write_bytes(content)
        os.utime(path, ns=(written, written))
        return wrong

    def _wrong(self, command: Command, named: Sequence[str], exact: Any, cell: str) -> str | None:
        try:
            ran = command.run(self.place)
        except TimeoutError:
            return f"{cell}: hangs"
        except Exception as error:
            return f"{cell}: {type(error).__name__}: {error}"
        if ran.code == 1 and any(each in ran.err for each in named):
            return None
        if ran.code == exact[0]:
            return None if _seen(command, self.place, ran) == exact else f"{cell}: exit {ran.code}, another outcome"
        return f"{cell}: exit {ran.code}, not named: {ran.err.strip()[-300:]}"


def _known(folder: str, damage: str, name: str, file: str) -> bool:
    return (
        (file, damage, name) in ENDLESS
        or (folder, file, damage, name) in UNSIGNED
        or (folder == "private" and file.startswith("rejected") and (damage, name) in APART)
        or (folder, damage, name) in NAMED
    )


def test_each_command_is_in_the_matrix_or_reads_neither_a_stream_nor_results() -> None:
    again = {"resume": "stream"}
    tried = {again.get(name, name) for folder in MATRIX.values() for name in folder.commands}
    lacking = sorted(cli.commands.keys() - tried - OTHERS.keys())
    assert not lacking, f"add {', '.join(lacking)} to MATRIX of tests/faults, or to OTHERS with what it reads"
    assert not OTHERS.keys() & tried
    assert tried | OTHERS.keys() == cli.commands.keys()


@pytest.mark.parametrize("folder", MATRIX)
def test_each_kind_of_file_is_damaged_once(
    folder: str, places: tuple[Place, Place], exact: Exact, tmp_path: Path, record_property: Callable[[str, int], None]
) -> None:
    """The diagonal of the matrix, by commands that run no job."""
    bench = Bench(places, folder, tmp_path / "place")
    commands = {name: command for name, command in MATRIX[folder].commands.items() if not command.job}
    cells = list(
        zip({_kind(file): file for file in files_of(places[1] / folder)}.values(), cycle(DAMAGES), cycle(commands))
    )
    faults = [
        bench.fault(damage, file, commands[name], exact(folder, name))
        for file, damage, name in cells
        if not _known(folder, damage, name, file)
    ]
    record_property("cells", len(cells))
    assert not any(faults), "\n".join(filter(None, faults))


@pytest.mark.nightly
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder, of in MATRIX.items() for name in of.commands])
def test_the_outcome_is_exact_or_the_file_is_named(
    folder: str,
    name: str,
    damage: str,
    places: tuple[Place, Place],
    exact: Exact,
    tmp_path: Path,
    record_property: Callable[[str, int], None],
) -> None:
    bench, command = Bench(places, folder, tmp_path / "place"), MATRIX[folder].commands[name]
    files = files_of(places[1] / folder)
    cells = [
        file for file in (first_and_last(files) if command.job else files) if not _known(folder, damage, name, file)
    ]
    faults = [bench.fault(damage, file, command, exact(folder, name)) for file in cells]
    record_property("cells", len(cells))
    assert not any(faults), "\n".join(filter(None, faults))
