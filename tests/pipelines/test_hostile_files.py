"""Files that once ended, hung or swelled the process: each command says one line, within its usual memory."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.container import LAYOUTS, TEXTS, deflate, write
from tests.fuzz.container_seeds import HOSTILE
from uldp.schemas.codec.columnar import write_varint
from uldp.transforms.io.local.stream import LocalStream

#: Runs commands as the command line does, each in a folder, and writes a line with its exit code behind its errors.
RUN = """
import json, os, sys
from uldp.pipelines.cli import main
for folder, arguments in json.loads(sys.argv[1]):
    os.chdir(folder)
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as stop:
        print(f"exit code {stop.code}", file=sys.stderr)
"""
#: Reads a file of messages to its end, keeping none, and writes the most memory that the process held, in kB. Not by
#: getrusage: a process inherits the peak of the one that started it.
READ = """
import re, sys
from pathlib import Path
from uldp.transforms.io.message_files import StreamError, read_messages
read = 0
try:
    for message in read_messages(sys.argv[1]):
        read += len(message.data)
        del message
except StreamError as error:
    print(f"error: {error}", file=sys.stderr)
print(read)
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""
#: A process that reads a small file takes 60 MB. A reader may take besides: a block, its copy, and its records.
MOST_KB = (100 + 3 * 16) * 1024


def run(program: str, *arguments: str | Path) -> tuple[int, list[str], list[str]]:
    """Return exit code, lines of output, and lines of errors."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


def record(size: int) -> bytes:
    """Encode a message of zeros."""
    return b"".join((write_varint(size), bytes(size), b"\0\0"))


def schema(name: str, block: bytes = b"\0") -> bytes:
    """Write a container with a hostile schema."""
    return write({b"avro.schema": HOSTILE[name]}, [(1, block)])


BOMB = write({b"avro.schema": TEXTS[0], b"avro.codec": b"deflate"}, [(1, deflate(record(400_000_000)))])
UNKNOWN = "holds records of a schema that uldp does not know, named 'uldp.Message'"
ATTACKS = {
    "a record that holds itself": (schema("recursive"), UNKNOWN),
    "a record that holds itself through another": (schema("recursive-far"), UNKNOWN),
    "a chain of records": (schema("recursive-union", b"\2" * 200_000), UNKNOWN),
    "endless nulls": (
        schema("nulls", write_varint(2**34) + bytes(4)),
        "holds records of a schema that uldp does not know",
    ),
    "a deep schema": (schema("deep"), "its header holds no schema of a record"),
    "a bomb": (BOMB, "a block takes 16,777,217 bytes or more, the limit is 16,777,216"),
    "a block of a terabyte": (
        write({b"avro.schema": TEXTS[0]}, [(1, b"")], size=2**40),
        "a block takes 1,099,511,627,776 bytes or more",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_file_of_messages_is_one_line(attack: str, tmp_path: Path) -> None:
    content, reason = ATTACKS[attack]
    (tmp_path / "a.avro").write_bytes(content)
    code, out, lines = run(READ, tmp_path / "a.avro")
    assert (code, len(lines)) == (0, 1)
    assert re.match(rf"error: {tmp_path}/a\.avro: .*({reason}).*; ", lines[0])
    assert int(out[-1]) < MOST_KB


def test_large_messages_are_held_one_by_one(tmp_path: Path) -> None:
    size, n = 9_000_000, 60
    block = 1, deflate(record(size))
    (tmp_path / "a.avro").write_bytes(write({b"avro.schema": TEXTS[0], b"avro.codec": b"deflate"}, [block] * n))
    assert (tmp_path / "a.avro").stat().st_size < 1_000_000
    code, (read, peak), lines = run(READ, tmp_path / "a.avro")
    assert (code, int(read), lines) == (0, size * n, [])
    assert int(peak) < MOST_KB


#: By schema, a record: its bytes before a map of attributes, those of a value of the map, and those behind the map.
WITH_ATTRIBUTES = {
    "ours": (TEXTS[0], b"\2x", b"\0", b"\0"),
    "Pub/Sub": (LAYOUTS["pubsub"], b"\2x\0\0", b"\0", b""),
    "Event Hubs": (LAYOUTS["hubs"], b"\0\x1020260101", b"\0\0", b"\2\2x"),
}


@pytest.mark.parametrize("writer", WITH_ATTRIBUTES)
def test_a_million_attributes_take_no_memory(writer: str, tmp_path: Path) -> None:
    text, begin, value, end = WITH_ATTRIBUTES[writer]
    n = 1_300_000
    entries = b"".join(b"\x10%08x%s" % (number, value) for number in range(n))
    block = b"".join((begin, write_varint(n), entries, b"\0", end))
    (tmp_path / "a.avro").write_bytes(write({b"avro.schema": text}, [(1, block)]))
    code, (read, peak), lines = run(READ, tmp_path / "a.avro")
    assert (code, int(read), lines) == (0, 1, [])
    assert int(peak) < MOST_KB


def furnish(folder: Path) -> None:
    """Write a spec, an archive, a local stream and results into a folder; the tests put hostile files into these."""
    (folder / "out/specs/c-v1").mkdir(parents=True)
    (folder / "spec.yaml").write_text(
        "{collection: c, version: 1, domain: {size: 3}, mechanism: {name: rr, epsilon: 1}, window: {size: 1h}}"
    )
    (folder / "out/specs/c-v1/spec.yaml").write_bytes((folder / "spec.yaml").read_bytes())
    for name in ("counts", "estimates", "rejected", "missing"):
        (folder / "out" / name).mkdir(parents=True)
    (folder / "archive").mkdir()
    LocalStream.create(folder / "stream", simulated_clock=True).close()


COMMANDS = {
    "backfill": ("archive/a.avro", ("backfill", "--spec", "spec.yaml", "--from", "archive", "--to", "results")),
    "show counts": ("out/counts/c-v1.20260101T090000Z--20260101T100000Z.000000.avro", ("show", "out")),
    "show estimates": ("out/estimates/c-v1.20260101T090000Z--20260101T100000Z.000000.mle.avro", ("show", "out")),
    "report": (
        "out/estimates/c-v1.20260101T090000Z--20260101T100000Z.000000.mle.avro",
        ("report", "out", "--out", "page.html"),
    ),
    "report rejected": ("out/rejected/a.avro", ("report", "out", "--out", "page.html")),
    "report missing": ("out/missing/a.avro", ("report", "out", "--out", "page.html")),
    "replay": ("out/rejected/a.avro", ("replay", "out/rejected", "--to", "again")),
    "stream": ("stream/000000000000.avro", ("stream", "--spec", "spec.yaml", "--from", "stream", "--to", "results")),
}
OF_COMMANDS: dict[str, Callable[[Path], object]] = {
    "a record that holds itself": lambda path: path.write_bytes(_for(path, schema("recursive"))),
    "a pipe": os.mkfifo,
}


def _for(path: Path, content: bytes) -> bytes:
    """Name the hostile record as the one that the command expects there."""
    name = {"counts": b"Statistic", "estimates": b"Estimate", "rejected": b"Rejected", "missing": b"Missing"}
    ours = next((name[part] for part in path.parts if part in name), b"Message")
    text = HOSTILE["recursive"].replace(b"Message", ours)
    return content if ours == b"Message" else write({b"avro.schema": text}, [(1, b"\0")])


@pytest.mark.parametrize("attack", OF_COMMANDS)
def test_each_command_names_a_hostile_file_and_fails(attack: str, tmp_path: Path) -> None:
    for command, (path, _) in COMMANDS.items():
        furnish(tmp_path / command)
        OF_COMMANDS[attack](tmp_path / command / path)
    commands = [(str(tmp_path / command), arguments) for command, (_, arguments) in COMMANDS.items()]
    _, _, lines = run(RUN, json.dumps(commands))
    assert lines[1::2] == ["exit code 1"] * len(COMMANDS), lines
    for error, (command, (path, _)) in zip(lines[::2], COMMANDS.items(), strict=True):
        named = "out/rejected" if command == "replay" else path  # it looks for the kind of the folder first
        assert re.match(rf"error: .*{named}: ", error)
