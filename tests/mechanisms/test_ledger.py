"""Ledgers: what they remember, who may read their file, and what a crash leaves."""

import json
import os
from pathlib import Path

import pytest

from uldp.mechanisms.ledger import FileLedger, Ledger, MemoryLedger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Ledger:
    return MemoryLedger() if request.param == "memory" else FileLedger(path)


def test_the_last_payload_of_each_key_is_recalled(ledger: Ledger) -> None:
    assert ledger.recall("a") is None
    ledger.remember("a", b"\x00\xff")
    ledger.remember("b", b"")
    ledger.remember("a", b"\x01")
    assert (ledger.recall("a"), ledger.recall("b"), ledger.recall("c")) == (b"\x01", b"", None)


def test_a_restart_forgets_nothing(path: Path) -> None:
    FileLedger(path).remember("a", b"\x07")
    FileLedger(path).remember("b", b"\x08")
    restarted = FileLedger(path)
    assert (restarted.recall("a"), restarted.recall("b")) == (b"\x07", b"\x08")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_the_file(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        FileLedger(path).remember("a", b"\x07")
        FileLedger(path).remember("a", b"\x08")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_is_refused(path: Path, mode: int) -> None:
    FileLedger(path).remember("a", b"\x07")
    path.chmod(mode)
    with pytest.raises(ValueError, match=r"ledger\.json: others may read this ledger.*0600"):
        FileLedger(path)


@pytest.mark.parametrize("fails", ["os.fsync", "pathlib.Path.replace"])
def test_a_write_that_fails_leaves_the_ledger_as_it_was(
    path: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = FileLedger(path)
    ledger.remember("a", b"\x07")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(fails, fail)
        with pytest.raises(OSError, match="no space left"):
            ledger.remember("a", b"\x08")
    assert ledger.recall("a") == FileLedger(path).recall("a") == b"\x07"
    assert list(path.parent.iterdir()) == [path]


def test_the_remains_of_a_crash_are_overwritten(path: Path) -> None:
    remains = path.with_name("ledger.json.new")
    remains.write_text('{"a": "0')
    remains.chmod(0o644)
    FileLedger(path).remember("a", b"\x07")
    assert not remains.exists()
    assert path.stat().st_mode & 0o777 == 0o600
    assert FileLedger(path).recall("a") == b"\x07"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 7777}', '{"a": "7777x"}', "\udcff7777"])
def test_a_damaged_file_is_refused_without_its_content(path: Path, content: str) -> None:
    path.write_bytes(content.encode(errors="surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(ValueError, match=r"ledger\.json: this is no ledger, or it is damaged; restore it") as caught:
        FileLedger(path)
    assert "7777" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_the_file_is_json_and_repr_names_it_alone(path: Path) -> None:
    ledger = FileLedger(path)
    ledger.remember("a", b"\x77\x77")
    assert json.loads(path.read_text()) == {"a": "7777"}
    assert repr(ledger) == f"FileLedger({str(path)!r})"
