"""Ledgers: what they remember, who may read their file, and what a crash leaves."""

import fcntl
import json
import math
import os
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uldp.mechanisms.devices.clock import Start
from uldp.mechanisms.devices.ledger import FileLedger, Ledger, LedgerContent, MemoryLedger
from uldp.mechanisms.devices.spending import Spending
from uldp.schemas.errors import DataError


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


def test_a_link_leads_to_one_ledger(path: Path) -> None:
    link = path.with_name("link.json")
    link.symlink_to(path.name)
    remember(FileLedger(link), "a", b"\x07")
    assert link.is_symlink()
    assert kept(FileLedger(path)) == kept(FileLedger(link)) == {"a": b"\x07"}


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


def test_a_lock_that_was_removed_is_taken_again(path: Path) -> None:
    """Who has waited for a lock whose file is gone must not enter beside who holds the new one."""
    lock = path.with_name("ledger.json.lock")
    ledger = FileLedger(path)
    waits, entered = threading.Event(), threading.Event()

    def change() -> None:
        with FileLedger(path).change():
            entered.set()

    flock = fcntl.flock

    def told(*arguments: Any) -> None:
        waits.set()
        flock(*arguments)

    old = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(old, fcntl.LOCK_EX)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", told)
        waiting = threading.Thread(target=change)
        waiting.start()
        assert waits.wait(60)
    lock.unlink()
    with ledger.change():  # under the lock of a new file
        assert lock.exists()
        waits.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fcntl, "flock", told)
            os.close(old)  # now the other one holds the lock of the old file, and must ask for the new one
            assert waits.wait(60)
        assert not entered.is_set()
    waiting.join(60)
    assert entered.is_set()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_that_is_removed_while_it_is_held_changes_nothing(path: Path, replaced: bool) -> None:
    lock = path.with_name("ledger.json.lock")
    remember(FileLedger(path), "a", b"\x07")

    def change_without_lock() -> None:
        with FileLedger(path).change() as content:
            content.kept["a"] = b"\x08"
            lock.unlink()
            if replaced:  # and another device enters
                remember(FileLedger(path), "b", b"\x09")

    with pytest.raises(ValueError, match=r"ledger\.json\.lock: was removed or replaced while .*; leave the file there"):
        change_without_lock()
    assert kept(FileLedger(path)) == {"a": b"\x07"} | ({"b": b"\x09"} if replaced else {})


def test_keys_differ_from_ledger_to_ledger() -> None:
    with MemoryLedger().change() as one, MemoryLedger().change() as other:
        assert one.key("a") != other.key("a")
        assert one.key("a") == one.key("a") != one.key("b")


def test_a_ledger_of_a_later_format_is_refused(path: Path) -> None:
    path.write_text(json.dumps({"format": 5}))
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


SECRET = "7777"
DAMAGED: dict[str, str | bytes] = {
    "empty": "",
    "cut": "{",
    "a list": f"[{SECRET}]",
    "a number in place of a payload": f'{{"a": {SECRET}}}',
    "no hexadecimal": f'{{"a": "{SECRET}x"}}',
    "no UTF-8": b"\xff7777",
    "another key": f'{{"format": 3, "salt": "", "kept": {{}}, "spent": [], "start": null, "more": "{SECRET}"}}',
    "a key twice": f'{{"a": "{SECRET}", "a": "00"}}',
    "a key of the ledger twice": '{"format": 3, "salt": "", "kept": {}, "spent": [[7777, 1.0]], "spent": []}',
    "lists in lists": "[" * 200_000,
    "mappings in mappings": '{"a":' * 200_000,
    "no format": '{"format": null}',
    "format as a text": f'{{"format": "{SECRET}"}}',
}
SPENDINGS = ["1e400", "NaN", "Infinity", "-Infinity", "-5", "0", "-1e400", '"1"', "true", "9" * 5000, "[1]"]
END = ', "start": null}'
TIMES = ["-5", "1.5", "1e400", "null", '"5"', "true", str(1 << 63), "9" * 5000]
for number in SPENDINGS:
    DAMAGED[f"spent {number:.9}"] = f'{{"format": 3, "salt": "", "kept": {{}}, "spent": [[7777, {number}]]{END}'
for number in TIMES:
    DAMAGED[f"at {number:.9}"] = f'{{"format": 3, "salt": "7777", "kept": {{}}, "spent": [[{number}, 1.0]]{END}'
for start in ["5", "[]", '["7777"]', '["7777", 1.5]', "[7777, 5]", '["7777", 5, 5]', f'["7777", {1 << 63}]']:
    DAMAGED[f"started {start}"] = f'{{"format": 3, "salt": "", "kept": {{}}, "spent": [], "start": {start}}}'


def put(path: Path, content: str | bytes) -> None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(0o600)


def refusal(path: Path) -> str:
    """The one line with which a file is refused, which must not hold any of it; nor may an error behind it."""
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")) as caught:
        FileLedger(path)
    assert type(caught.value) is DataError
    (line,) = str(caught.value).splitlines()
    assert SECRET not in "".join(traceback.format_exception(caught.value)).replace(str(path), "")
    return line


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_refused_without_its_content(path: Path, name: str) -> None:
    put(path, DAMAGED[name])
    assert ": this is no ledger, or it is damaged (" in (line := refusal(path))
    assert "; restore it, or remove it and spend all budgets once more" in line


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["format", "spent", "kept"]), inner),
)
LEDGERS = st.fixed_dictionaries({"format": st.just(3) | JSON, "salt": JSON, "kept": JSON, "spent": JSON, "start": JSON})


@given(st.binary() | (JSON | LEDGERS).map(lambda value: json.dumps(value).encode()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_junk_is_a_ledger_or_refused_in_one_line(path: Path, junk: bytes) -> None:
    put(path, junk)
    refused: list[ValueError] = []
    try:
        with FileLedger(path).change() as content:
            assert all(time >= 0 and epsilon > 0 for time, epsilon, _ in content.spent)
        FileLedger(path)  # what it has written is a ledger
    except ValueError as error:
        refused = [error]
    assert [(type(error), len(str(error).splitlines())) for error in refused] in ([], [(DataError, 1)])


def test_what_is_no_file_is_refused(path: Path) -> None:
    path.mkdir()
    assert "Is a directory; name a file" in refusal(path)
    path.rmdir()
    os.mkfifo(path, 0o600)
    assert "is a pipe or a device, not a file" in refusal(path)
    path.unlink()
    path.symlink_to(path)
    assert "remove the link" in refusal(path)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(path: Path) -> None:
    put(path, b"")
    os.truncate(path, 1 << 40)
    assert "more than 67,108,864 bytes" in refusal(path)


def test_a_ledger_writes_nothing_that_it_could_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(FileLedger(path), "a", b"\x07")
    before = path.read_bytes()
    monkeypatch.setattr("uldp.mechanisms.devices.ledger._MAX_BYTES", 1000)
    changes: list[tuple[Callable[[LedgerContent], object], str]] = [
        (lambda content: content.spent.append(Spending(-5, 1.0)), "times since 1970"),
        (lambda content: content.spent.append(Spending(5, math.nan)), "budgets above 0"),
        (lambda content: content.kept.update(b=bytes(1000)), "a ledger has at most 1,000 bytes"),
    ]
    for change, remedy in changes:
        with pytest.raises(ValueError, match=remedy) as caught, FileLedger(path).change() as content:
            change(content)
        assert len(str(caught.value).splitlines()) == 1
        assert path.read_bytes() == before


def test_the_file_is_json_and_repr_names_it_alone(path: Path) -> None:
    ledger = FileLedger(path)
    with ledger.change() as content:
        content.kept["a"] = b"\x77\x77"
        content.spent += [Spending(5, 0.5), Spending(6, math.inf, 3)]
        content.start, content.looked = Start("of a run", -7), Start("of another", 8)
    written = {"format": 4, "salt": content.salt.hex(), "kept": {"a": "7777"}}
    written |= {"spent": [[5, 0.5, None], [6, None, 3]], "start": ["of a run", -7], "looked": ["of another", 8]}
    assert json.loads(path.read_text()) == written
    assert len(content.salt) == 16
    assert repr(ledger) == repr(FileLedger(str(path))) == f"FileLedger({str(path)!r})"
    assert kept(FileLedger(str(path))) == {"a": b"\x77\x77"}
