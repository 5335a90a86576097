"""Each damage of each file under each command: the outcome is exact, or the exit code is 1 and the file is named.

`make test` runs one file of each kind, and the commands that are quick; `make nightly` runs all.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import NIGHTLY
from tests.faults.damages import DAMAGES
from tests.faults.place import Place, Ran, compact, prepare, run_backfill, run_stream, run_stream_apart, state, uldp
from uldp.pipelines.cli import cli


class Command(NamedTuple):
    """A command, and what to compare after it.

    Attributes:
        run: Runs it.
        outcome: Returns what it has made, beside what it has printed.
        slow: Whether it runs a job, or reads as another command of the same folder does.
    """

    run: Callable[[Place], Ran]
    outcome: Callable[[Place], Any] = lambda place: None
    slow: bool = False


def _of(out: str) -> Callable[[Place], Any]:
    return lambda place: state(place / out)


def _text(name: str) -> Callable[[Place], str]:
    return lambda place: (place / name).read_text()


def _page(place: Place) -> str:
    """The page without the time at which it was made."""
    return re.sub(r"Made [-0-9]* [0-9:]* UTC", "", (place / "page.html").read_text(encoding="utf-8"))


def _messages_of(place: Place) -> Any:
    from uldp.transforms.io.message_files import read_messages

    return sorted(each.data for path in (place / "again").glob("*.avro") for each in read_messages(path))


def _kept(run: Callable[[Place, str], Ran], out: str, apart: str | None = None) -> Callable[[Place], Ran]:
    """A command that changes files of a folder, and nothing that readers see, whatever the damage is."""

    def ran(place: Place) -> Ran:
        results = (place / (apart or out), place / out)
        before = state(*results)
        done = run(place, out)
        return Ran(done.code, str(state(*results) == before), done.err)

    return ran


def _prune(place: Place, out: str) -> Ran:
    return uldp("prune", place / out)


def _replay(out: str) -> Command:
    run = lambda place: uldp("replay", place / out / "rejected", "--to", place / "again")  # noqa: E731
    return Command(run, _messages_of)


def _backfill(place: Place) -> Ran:
    shutil.rmtree(place / "batch")
    return run_backfill(place)


def _stream_anew(place: Place) -> Ran:
    shutil.rmtree(place / "live")
    return run_stream(place)


def _readers(out: str) -> Mapping[str, Command]:
    return {
        "show": Command(lambda place: uldp("show", "--json", place / out)),
        "ask": Command(lambda place: uldp("ask", place / out, "--json")),
        "export": Command(lambda place: uldp("export", place / out, "--to", place / "rows.csv"), _text("rows.csv")),
        "audit": Command(lambda place: uldp("audit", place / "stream", place / out)),
    }


#: What reads a stream.
OF_STREAMS: Mapping[str, Command] = {
    "audit": Command(lambda place: uldp("audit", place / "stream", place / "live")),
    "decode": Command(lambda place: uldp("decode", "--first", "0", place / "stream")),
    "stream": Command(_stream_anew, _of("live"), slow=True),
    "resume": Command(run_stream, _of("live"), slow=True),
    "backfill": Command(_backfill, _of("batch"), slow=True),
}
#: What reads a stream of one value.
OF_CLIENTS: Mapping[str, Command] = {
    "verify": Command(lambda place: uldp("verify", "--spec", place.spec, "--value", "0", place / "client")),
}
#: What reads or writes the results of a stream.
OF_RESULTS: Mapping[str, Command] = {
    **_readers("live"),
    "report": Command(lambda place: uldp("report", place / "live", "--out", place / "page.html"), _page),
    "rejected": Command(lambda place: uldp("rejected", place / "live")),
    "late": Command(lambda place: uldp("late", place / "live"), slow=True),
    "replay": _replay("live"),
    "prune": Command(_kept(_prune, "live")),
    "compact": Command(_kept(compact, "live")),
    "merge": Command(lambda place: uldp("merge", place / "live", place / "joined", "--to", place / "m"), _of("m")),
    "resume": Command(run_stream, _of("live"), slow=True),
}
#: What reads or writes the private results of a stream, if they are in a folder of their own.
OF_PRIVATE: Mapping[str, Command] = {
    "audit": Command(lambda place: uldp("audit", place / "stream", place / "apart", "--private", place / "private")),
    "replay": _replay("private"),
    "prune": Command(_kept(_prune, "private", "apart")),
    "compact": Command(_kept(compact, "private", "apart")),
    "resume": Command(run_stream_apart, lambda place: state(place / "apart", place / "private"), slow=True),
}
#: What reads answers about zones.
OF_ZONES: Mapping[str, Command] = {
    "background": Command(
        lambda place: uldp("background", place / "zoned", "--to", place / "learned"), _text("learned/home.csv")
    ),
}
#: The commands behind each folder.
MATRIX: Mapping[str, Mapping[str, Command]] = {
    "stream": OF_STREAMS,
    "client": OF_CLIENTS,
    "live": OF_RESULTS,
    "private": OF_PRIVATE,
    "joined": _readers("joined"),
    "zoned": OF_ZONES,
}
#: Commands that read neither a stream nor results, or that say what there is now; and what they read.
OTHERS = {
    "advise": "a question on the command line",
    "check": "specs",
    "collect": "specs and what devices post",
    "demo": "examples",
    "device-table": "a spec",
    "vectors": "a spec",
    "init": "answers",
    "schema": "the models of specs",
    "serve": "results, as show, ask and report do, whose damage it names in each answer",
    "simulate": "a spec and a truth",
    "status": "results; tests/pipelines/results/test_signed.py damages them",
    "zones": "specs and files of places",
}
#: A stream without its mark is open, and a job waits for more of it.
ENDLESS = {("closed", damage, command) for damage in ("removed", "restored") for command in ("stream", "resume")}
#: Not exact yet: a folder of private results has no journal, which is beside the others. An audit names the file.
APART = {(damage, "replay") for damage in ("removed", "restored")}


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Place]:
    """What was there earlier, and what is there now."""
    return prepare(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def wanted(places: tuple[Place, Place], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Command], Any]:
    """What a command prints and makes of undamaged files."""
    kept: dict[str, Any] = {}

    def of(name: str, command: Command) -> Any:
        if name not in kept:
            place = places[1].copy(tmp_path_factory.mktemp(name) / "place")
            ran = command.run(place)
            kept[name] = _seen(command, place, ran)
        return kept[name]

    return of


def _seen(command: Command, place: Place, ran: Ran) -> Any:
    """Return the exit code, what a command has printed, unless it ran a job, and what it has made."""
    return ran.code, None if command.slow else ran.out.replace(str(place.root), ""), command.outcome(place)


def files_of(folder: Path) -> Iterator[str]:
    """The files of a folder; unless in the nightly run, the last one of each kind."""
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    kinds = {re.sub(r"[0-9a-f]{6,}", "", re.sub(r"[0-9]{8}T.*Z/", "", file)): file for file in files}
    yield from files if NIGHTLY else kinds.values()


def names_of(file: str) -> Iterator[str]:
    """The texts by which a line may name a file: its own name; its window; the kind of its records."""
    path = Path(file)
    if not re.fullmatch(r"[0-9]{6}(\..*)?\.avro", path.name):
        yield path.name
    if window := re.search(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z--", file):
        yield window[0]
        year, month, day, hour, minute, _ = window.groups()
        yield f"{year}-{month}-{day}T{hour}:{minute}"
    if path.parts[0] in ("late", "rejected", "few"):
        yield path.parts[0]
    if path.parent.name == "shared":
        yield from ("c v1 from ", "c-v1: the newest pane of the window from ")
        yield "c-v1: the newest pane by auto of the window from "


def fault(damage: str, folder: str, file: str, command: Command, places: tuple[Place, Place], exact: Any) -> str | None:
    """Damage a file of the second place and run a command; return what is wrong, if anything."""
    earlier, place = places
    path = place / folder / file
    content, before = path.read_bytes(), {each.name for each in path.parent.iterdir()}
    DAMAGES[damage](path, earlier / folder / file)
    after = [each.name for each in path.parent.iterdir()]
    if damage == "restored" and path.exists() and path.read_bytes() == content:
        return None  # it is as it was
    try:
        ran = command.run(place)
    except TimeoutError:
        return f"{file}: hangs"
    named = [*names_of(file), *(each for each in after if each not in before)]
    if ran.code == 1 and any(each in ran.err for each in named):
        return None
    if ran.code == exact[0]:
        return None if _seen(command, place, ran) == exact else f"{file}: exit {ran.code}, and another outcome"
    return f"{file}: exit {ran.code}, not named: {ran.err.strip()[-300:]}"


def _cases(folder: str, commands: Mapping[str, Command]) -> Iterator[Any]:
    for damage in DAMAGES:
        for name, command in commands.items():
            marks = [pytest.mark.nightly] if command.slow else []
            yield pytest.param(folder, damage, name, command, id=f"{folder}-{damage}-{name}", marks=marks)


def test_each_command_is_in_the_matrix_or_reads_neither_a_stream_nor_results() -> None:
    again = {"resume": "stream"}
    tried = {again.get(name, name) for commands in MATRIX.values() for name in commands}
    lacking = sorted(cli.commands.keys() - tried - OTHERS.keys())
    assert not lacking, f"add {', '.join(lacking)} to MATRIX of tests/faults, or to OTHERS with what it reads"
    assert not OTHERS.keys() & tried
    assert tried | OTHERS.keys() == cli.commands.keys()


@pytest.mark.parametrize(
    ("folder", "damage", "name", "command"),
    [case for folder, commands in MATRIX.items() for case in _cases(folder, commands)],
)
def test_the_outcome_is_exact_or_the_file_is_named(
    folder: str,
    damage: str,
    name: str,
    command: Command,
    places: tuple[Place, Place],
    wanted: Callable[[str, Command], Any],
    tmp_path: Path,
) -> None:
    earlier, now = places
    exact = wanted(f"{folder}-{name}", command)
    faults = []
    for number, file in enumerate(files_of(now / folder)):
        apart = folder == "private" and file.startswith("rejected") and (damage, name) in APART
        if not (apart or (file, damage, name) in ENDLESS):
            copy = now.copy(tmp_path / str(number))
            faults.append(fault(damage, folder, file, command, (earlier, copy), exact))
            shutil.rmtree(copy.root)
    wrong = [each for each in faults if each is not None]
    assert not wrong, "\n".join(wrong)
