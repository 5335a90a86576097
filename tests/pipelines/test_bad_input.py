"""Each mistake at the command line, and the one line that says what it is."""

import shlex
from pathlib import Path

import click
import pytest

from tests.pipelines.command import SPEC, TRUTH, Run
from uldp.pipelines.cli import cli
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

#: A command line, in which SPEC and TRUTH are files of the example; its exit code; and a part of what it says.
BAD_INPUT = [
    ("", 2, "Usage"),
    ("check", 2, "Missing argument 'SPEC...'"),
    ("check wrong.yaml", 1, "wrong.yaml: version: missing; add it"),
    ("check empty", 2, "File 'empty' is a directory (see uldp check --help)"),
    ("check junk/junk.avro", 1, "error: junk/junk.avro: the file is not a text file; is this the right file?"),
    ("check SPEC --userz 5", 2, "No such option"),  # click's versions differ in the rest
    ("frobnicate", 2, "No such command 'frobnicate' (see uldp --help)"),
    ("simulate SPEC --truth TRUTH --users 0 --to s", 2, "0 is not in the range"),
    ("simulate SPEC --truth TRUTH --users 5 --to full", 1, "full: not an empty directory"),
    ("simulate SPEC --truth TRUTH --users 5 --to s --duration 3x", 2, "'3x': write a duration"),
    ("simulate SPEC --truth TRUTH --users 5 --to s --start noon", 2, "is not an ISO 8601 time"),
    (
        "simulate SPEC --truth TRUTH --users 5 --to s --start 1969-12-31T23:59:59Z",
        2,
        "Invalid value for '--start': '1969-12-31T23:59:59Z' is before 1970; write a later time, as 2026",
    ),
    ("backfill --spec SPEC --from empty --to out", 1, "empty: holds no .avro file of messages"),
    ("backfill --spec SPEC --from full --to out --frob=1", 1, "unknown option --frob"),
    ("backfill --spec SPEC --from full --to out stray", 1, "unexpected argument 'stray'"),
    ("backfill --spec SPEC --spec SPEC --from full --to out", 1, "two specs have collection manhattan"),
    ("backfill --spec SPEC --from junk --to out", 1, "junk.avro: not an Avro file of messages"),
    ("stream --spec SPEC --from empty --to out", 1, "empty: holds nothing; give a directory"),
    ("stream --spec SPEC --from kafka:broker:9092/t --to out", 1, "add --runner=PortableRunner"),
    ("stream --spec SPEC --from kafka:broker/t --to out", 1, "write kafka:HOST:PORT/TOPIC"),
    ("stream --spec SPEC --from full --to out --runner=FlinkRunner", 1, "--runner=FlinkRunner"),
    ("give-up archive", 1, "archive: holds messages; give a directory that holds a local stream"),
    ("give-up", 2, "Missing argument 'STREAM'"),
    ("show empty", 1, "empty: "),
    ("report empty --out r.html", 1, "empty: "),
    ("replay empty --to again", 1, "empty: holds nothing; give a directory that holds rejected reports"),
    ("replay full --to again", 1, "full: holds a local stream; give a directory that holds rejected reports"),
    ("show full", 1, "full: holds a local stream; give a directory that holds results"),
    ("report full --out r.html", 1, "full: holds a local stream; give a directory that holds results"),
    (
        "simulate SPEC --truth TRUTH --users 5 --to gs://b/s",
        2,
        "gs://b/s: gs: does not name a directory on this machine",
    ),
    ("stream --spec SPEC --from full --to gs://b/out", 2, "gs://b/out: gs: does not name a directory on this machine"),
    ("stream --spec SPEC --from full --to bogus://b", 2, "bogus://b: bogus: does not name a directory on this machine"),
    ("stream --spec SPEC --from full --to kafka:b:9092/t", 2, "results go to a directory, or to a URL"),
    (
        "stream --spec SPEC --from pubsub:projects/project/subscriptions/reports --to out --runner=PrismRunner",
        1,
        "reports: --runner=PrismRunner would acknowledge messages that it keeps only in memory; leave out --",
    ),
    ("backfill --spec SPEC --from full --to pubsub:t", 2, "results go to a directory, or "),
    ("backfill --spec SPEC --from full --to bogus://b", 1, "Beam has no file system for bogus://"),
    ("replay full --to s3://b/again", 2, "s3://b/again: s3: does not name a directory on this machine"),
    ("show gs://b/results", 2, "gs://b/results: gs: does not name a directory on this machine"),
    ("demo --out gs://b/demo", 2, "gs://b/demo: gs: does not name a directory on this machine"),
    ("backfill --spec SPEC --from full --to full", 1, "--from full and --to full overlap"),
    ("stream --spec SPEC --from full --to full/out", 1, "--from full and --to full/out"),
    ("stream --spec SPEC --from archive --to out", 1, "archive: holds messages; give a directory that "),
    ("export empty --to f.xlsx", 1, "f.xlsx: the ending decides the format; choose one of .parquet, .arrow"),
    ("export empty", 2, "Missing option '--to'"),
    ("zones SPEC --tag home --count 1 --to z.csv", 2, "1 is not in the range"),
    ("background empty --to learned", 1, "empty: "),
    ("background full --to learned", 1, "full: holds a local stream; give a directory that holds results"),
    ("verify --spec SPEC empty", 2, "Missing option '--value'"),
    ("verify --spec SPEC --value 1 empty", 1, "empty: holds no .avro file of messages"),
    ("verify --spec SPEC --value 1 full --against full", 1, "no value is given; add --against-value"),
    ("verify --spec SPEC --value 1 full --against-value 2", 1, "of the archive --against; add it"),
    ("verify --spec SPEC --value 1 full", 1, "full: a collector rejects 1 report; uldp decode says why"),
    ("decode", 2, "Missing argument 'HEX|FILE'"),
    ("decode nowhere", 1, "'nowhere': neither a file nor the hexadecimal digits of a message"),
    ("decode c301e", 1, "'c301e': neither a file nor the hexadecimal digits of a message, two for each byte"),
    ("decode ''", 1, "error: a collector would reject 1 report"),
    ("decode empty", 1, "empty: holds no .avro file of messages"),
]


@pytest.mark.parametrize(("line", "code", "message"), BAD_INPUT)
def test_bad_input_is_one_clear_line(
    line: str, code: int, message: str, uldp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    LocalStream.create(tmp_path / "full").append([Message(b"no report", 0)])
    LocalStream.create(tmp_path / "archive").append([Message(b"no report", 0)])
    (tmp_path / "archive" / "stream.json").unlink()
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "junk.avro").write_bytes(b"no Avro\0")
    (tmp_path / "wrong.yaml").write_text(Path(SPEC).read_text(encoding="utf-8").replace("version: 1", ""))
    before = sorted(tmp_path.rglob("*"))
    arguments = [{"SPEC": SPEC, "TRUTH": TRUTH}.get(word, word) for word in shlex.split(line)]
    found, out, err = uldp(*arguments)
    assert found == code
    if "junk" not in arguments:  # which is not known before it is read
        assert sorted(tmp_path.rglob("*")) == before
    assert message in out + err
    assert "Traceback" not in err
    if arguments:
        assert len(err.splitlines()) == 1


SINGLE = [
    pytest.param(name, option, id=f"{name}{option.opts[-1]}")
    for name, command in cli.commands.items()
    for option in command.params
    if isinstance(option, click.Option) and not (option.multiple or option.is_flag)
]


@pytest.mark.parametrize(("command", "option"), SINGLE)
def test_an_option_of_one_value_is_given_once(command: str, option: click.Option, uldp: Run) -> None:
    name, values = option.opts[-1], ("1",) * option.nargs
    code, _, err = uldp(command, name, *values, name, *values)
    assert (code, err) == (2, f"error: {name} is given 2 times; give it once (see uldp {command} --help)\n")


def test_options_before_the_command_too(uldp: Run) -> None:
    code, _, err = uldp("--files-below", ".", "--files-below", ".", "check", "s.yaml")
    assert (code, err) == (2, "error: --files-below is given 2 times; give it once (see uldp --help)\n")


def test_options_that_may_be_repeated_are() -> None:
    repeated = {option.opts[-1] for command in cli.commands.values() for option in command.params if option.multiple}
    assert "--spec" in repeated
