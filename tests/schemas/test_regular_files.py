"""Regular files and the JSON in them, whatever a disk or somebody else has made of them."""

import errno
import os
from pathlib import Path

import pytest

from uldp.schemas import regular_files
from uldp.schemas.regular_files import is_at, open_regular, parse_json, read_json, sync_folder

JUNK = {
    "empty": b"",
    "no UTF-8": b'"\xff"',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "lists in lists": b"[" * 200_000,
    "closed lists in lists": b"[" * 200_000 + b"]" * 200_000,
    "mappings in mappings": b'{"a":' * 200_000,
    "a key twice": b'{"a": 1, "b": 2, "a": 1}',
    "a key twice, within": b'[{"a": {"b": 1, "b": 2}}]',
    "infinite": b"[1e400]",
    "negative infinite": b"-1e400",
    "NaN": b"NaN",
    "Infinity": b"[Infinity]",
    "-Infinity": b"-Infinity",
    "thousands of digits": b"9" * 5000,
    "two values": b"1 2",
}


@pytest.mark.parametrize("name", JUNK)
def test_what_is_not_json_is_refused_without_its_content(name: str) -> None:
    with pytest.raises(ValueError, match=r"^not JSON$") as caught:
        parse_json(JUNK[name])
    assert caught.value.__context__ is None


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[1]")
    assert read_json(path, limit=3) == [1]
    with pytest.raises(ValueError, match=r"^the file has more than 2 bytes$"):
        read_json(path, limit=2)


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device"):
        open_regular(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device"):
        open_regular("/dev/zero")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)


def test_a_file_is_at_its_path_until_it_is_removed_or_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.touch()
    other.touch()
    with path.open() as file:
        assert is_at(file.fileno(), path)
        assert not is_at(file.fileno(), other)
        other.replace(path)
        assert not is_at(file.fileno(), path)
        path.unlink()
        assert not is_at(file.fileno(), path)


def test_a_file_system_that_synchronizes_files_alone_is_left_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    number = errno.EINVAL
    sync_folder(tmp_path)
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        sync_folder(tmp_path)
    monkeypatch.setattr(regular_files, "FOLDER", 0)  # as on Windows, which opens no folder
    sync_folder(tmp_path)
