"""Ledgers: what they remember, who may read their file, and what a crash leaves."""

import hashlib
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from uldp.mechanisms.devices.ledger import FileLedger, Ledger, MemoryLedger
from uldp.mechanisms.devices.spending import Spending


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Ledger:
    return MemoryLedger() if request.param == "memory" else FileLedger(path)


def remember(ledger: Ledger, key: str, payload: bytes) -> None:
    with ledger.change() as content:
        content.kept[key] = payload


def kept(ledger: Ledger) -> dict[str, bytes]:
    with ledger.change() as content:
        return content.kept


def test_the_last_payload_of_each_key_is_kept(ledger: Ledger) -> None:
    assert kept(ledger) == {}
    remember(ledger, "a", b"\x00\xff")
    remember(ledger, "b", b"")
    remember(ledger, "a", b"\x01")
    assert kept(ledger) == {"a": b"\x01", "b": b""}


def test_a_change_that_ends_by_an_error_changes_nothing(ledger: Ledger) -> None:
    remember(ledger, "a", b"\x07")

    def fail() -> None:
        with ledger.change() as content:
            content.kept["a"] = b"\x08"
            content.spent.append(Spending(1, 1.0))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    with ledger.change() as content:
        assert (content.kept, content.spent) == ({"a": b"\x07"}, [])


def test_threads_change_it_one_after_the_other(ledger: Ledger) -> None:
    def add(_: int) -> None:
        with ledger.change() as content:
            content.kept["a"] = bytes([content.kept.get("a", b"\0")[0] + 1])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(40)))
    assert kept(ledger) == {"a": bytes([40])}


def test_a_restart_forgets_nothing(path: Path) -> None:
    with FileLedger(path).change() as first:
        first.kept["a"] = b"\x07"
        first.spent.append(Spending(5, math.inf))
    with FileLedger(path).change() as second:
        assert second == first


def test_processes_change_a_file_one_after_the_other(path: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from uldp.mechanisms import FileLedger
        ledger = FileLedger(Path(sys.argv[1]))
        for _ in range(30):
            with ledger.change() as content:
                content.kept["a"] = bytes([content.kept.get("a", b"\\0")[0] + 1])
    """
    processes = [subprocess.Popen([sys.executable, "-c", program, path]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert kept(FileLedger(path)) == {"a": bytes([90])}


def test_keys_differ_from_ledger_to_ledger() -> None:
    with MemoryLedger().change() as one, MemoryLedger().change() as other:
        assert one.key("a") != other.key("a")
        assert one.key("a") == one.key("a") != one.key("b")


def test_a_ledger_of_the_first_format_is_continued_under_its_keys(path: Path) -> None:
    key = hashlib.sha256(b"a").hexdigest()
    path.write_text(json.dumps({key: "07"}))
    path.chmod(0o600)
    with FileLedger(path).change() as content:
        assert content.kept[content.key("a")] == b"\x07"
        content.spent.append(Spending(5, 1.0))
    with FileLedger(path).change() as content:
        assert (content.kept[content.key("a")], content.spent) == (b"\x07", [Spending(5, 1.0)])


def test_a_ledger_of_a_later_format_is_refused(path: Path) -> None:
    path.write_text(json.dumps({"format": 3}))
    path.chmod(0o600)
    with pytest.raises(ValueError, match=r"ledger\.json: a later version of uldp has written this ledger; use that"):
        FileLedger(path)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_the_file(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        remember(FileLedger(path), "a", b"\x07")
        remember(FileLedger(path), "a", b"\x08")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_is_refused(path: Path, mode: int) -> None:
    remember(FileLedger(path), "a", b"\x07")
    path.chmod(mode)
    with pytest.raises(ValueError, match=r"ledger\.json: others may read this ledger.*0600"):
        FileLedger(path)


@pytest.mark.parametrize("fails", ["os.fsync", "pathlib.Path.replace"])
def test_a_write_that_fails_leaves_the_ledger_as_it_was(
    path: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = FileLedger(path)
    remember(ledger, "a", b"\x07")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(fails, fail)
        with pytest.raises(OSError, match="no space left"):
            remember(ledger, "a", b"\x08")
    assert kept(ledger) == kept(FileLedger(path)) == {"a": b"\x07"}
    assert sorted(path.parent.iterdir()) == [path, path.with_name("ledger.json.lock")]


def test_the_remains_of_a_crash_are_overwritten(path: Path) -> None:
    remains = path.with_name("ledger.json.new")
    remains.write_text('{"a": "0')
    remains.chmod(0o644)
    remember(FileLedger(path), "a", b"\x07")
    assert not remains.exists()
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept(FileLedger(path)) == {"a": b"\x07"}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"a": 7777}', '{"a": "7777x"}', "\udcff7777", '{"format": 2, "salt": "7777"}']
)
def test_a_damaged_file_is_refused_without_its_content(path: Path, content: str) -> None:
    path.write_bytes(content.encode(errors="surrogateescape"))
    path.chmod(0o600)
    with pytest.raises(ValueError, match=r"ledger\.json: this is no ledger, or it is damaged; restore it") as caught:
        FileLedger(path)
    assert "7777" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_the_file_is_json_and_repr_names_it_alone(path: Path) -> None:
    ledger = FileLedger(path)
    with ledger.change() as content:
        content.kept["a"] = b"\x77\x77"
        content.spent.append(Spending(5, 0.5))
    written = {"format": 2, "salt": content.salt.hex(), "kept": {"a": "7777"}, "spent": [[5, 0.5]]}
    assert json.loads(path.read_text()) == written
    assert len(content.salt) == 16
    assert repr(ledger) == f"FileLedger({str(path)!r})"
