"""The memory of a device: its permanent responses, the windows that it has reported to, and what its user has spent."""

import contextlib
import copy
import hashlib
import math
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uldp.mechanisms.devices.clock import SKEW, Clock, Start, SystemClock, checked_start, jump
from uldp.mechanisms.devices.spending import BudgetExceededError, Spending, noticed
from uldp.schemas.errors import DataError
from uldp.schemas.file_errors import file_error_text
from uldp.schemas.locks import locked_file
from uldp.schemas.regular_files import is_at, open_regular, others_may, parse_json, read_bounded, sync_folder
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.mistakes import plain

#: The format of the file.
_FORMAT = 4
#: The largest size of the file in bytes: each change reads and writes all of it. The responses of a device to each of
#: 16,384 values, in bits, take as much.
_MAX_BYTES = 64 << 20
_IN_HEX = ConfigDict(extra="forbid", strict=True, val_json_bytes="hex", ser_json_bytes="hex")
_Time = Annotated[int, Field(ge=0, lt=1 << 63)]
_StartTime = Annotated[int, Field(ge=-1 << 63, lt=1 << 63)]
_Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass
class LedgerContent:
    """The content of a ledger.

    Attributes:
        salt: Random bytes in each key, so that nobody can find values by hashing all of a domain who reads keys alone.
        kept: Payloads by key.
        spent: What the user has spent, over all collections.
        start: When the machine started, as its clock said; None if that is not known.
        looked: The same, when the ledger last looked at spendings that were ahead of the clock; None if none are.
    """

    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    kept: dict[str, bytes] = field(default_factory=dict)
    spent: list[Spending] = field(default_factory=list)
    start: Start | None = None
    looked: Start | None = None

    def key(self, name: str) -> str:
        """Return the key of an entry."""
        return hashlib.sha256(self.salt + name.encode()).hexdigest()


class Ledger(Protocol):
    """The memory of a device. It is as secret as the values: who reads it can tell which value a device holds.

    All collections of one user share one ledger, so that their spendings add up. Keep it for as long as the device
    reports, also for values that the device does not hold any more. A device that loses its ledger draws new permanent
    responses, and spends all budgets once more: the lasting one of each value, and that of each period.
    """

    def change(self) -> contextlib.AbstractContextManager[LedgerContent]:
        """Give the content to one device at a time, which may change it.

        When the block ends, a restart does not forget the change. If it ends by an error, nothing has changed.
        """

    def check_time(self, content: LedgerContent, event_time_ms: int) -> int | None:
        """Refuse the time of an observation that the ledger does not believe, by a ClockError.

        A device calls it first in each change, so the ledger may note in the content what it knows of the clock.

        Returns:
            The latest time that the ledger believes now, in milliseconds since 1970-01-01 UTC; None if it believes all.
        """


class MemoryLedger(Ledger):
    """A ledger that a restart forgets, and that believes every time, for tests of clients."""

    def __init__(self) -> None:
        self._content = LedgerContent()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def change(self) -> Iterator[LedgerContent]:
        with self._lock:
            content = copy.deepcopy(self._content)
            yield content
            self._content = content

    def check_time(self, content: LedgerContent, event_time_ms: int) -> None:
        """See ``Ledger``: it believes all."""


class FileLedger:
    """A ledger in a JSON file, which only its owner may read and write (mode 0600).

    Each change writes the whole file aside, synchronizes it to the disk and renames it, so that a crash leaves the file
    before or after the change. Processes and threads may share a ledger: a change waits for a lock, on a file beside it
    with ``.lock`` behind its name. The lock holds on one machine, so no ledger may be on a network drive that several
    machines use. The file system and its backups may keep earlier contents. Windows has no modes: keep the file in a
    folder that only its owner may read.

    A device that reports by times ahead of now would spend the budgets of later periods now, and one that reports by
    earlier times first would spend those of earlier periods. So observations must be of now. On Linux, the clock of the
    machine must not come further than the time either, until the machine is restarted.

    Args:
        path: The file; the first change creates it. Its folder must exist.
        skew: How far the times of observations may be from the clock, and the clock may come further than the time.
            None believes every time: a budget then holds by the times that are given.
        clock: The clock of the machine, in place of the system's.

    Raises:
        TypeError: if the path is none.
        ValueError: if the skew is negative; or if others may read or write the file, or it holds no ledger: whatever a
            disk, a backup or another program has made of it. The message is one line, and has no content of it.
    """

    def __init__(self, path: str | Path, *, skew: timedelta | None = SKEW, clock: Clock | None = None) -> None:
        if not isinstance(path, str | Path):
            raise TypeError(f"the path of a ledger is a {type(path).__name__}, not a str; write FileLedger(PATH)")
        if skew is not None and skew < timedelta(0):
            raise ValueError(f"the skew of a ledger is negative, {skew}; write timedelta(hours=1), or None")
        # Of a link, the file behind it: a change would put a second ledger in place of the link.
        self._path, self._skew = Path(os.path.realpath(path)), skew
        self._clock = SystemClock() if clock is None else clock
        _read(self._path)

    def __repr__(self) -> str:
        return f"FileLedger({str(self._path)!r})"

    @contextlib.contextmanager
    def change(self) -> Iterator[LedgerContent]:
        """Give the content of the file to one device at a time, and write the file.

        Raises:
            OSError: if the file cannot be written.
            ValueError: if the file holds no ledger any more; or at the end, if another process has removed the lock
                meanwhile, or if the content is none that can be read again. Nothing has changed then.
        """
        with _locked(self._path.with_name(f"{self._path.name}.lock")) as check:
            content = _read(self._path)
            try:
                yield content
            except BudgetExceededError:
                # A device that sends nothing must remember, too, since when spendings have been ahead of its clock.
                before, after = _read(self._path), _read(self._path)
                if self._skew is not None:
                    self._notice(after, self._skew)
                if after != before:
                    _write(self._path, after, check)
                raise
            _write(self._path, content, check)

    def check_time(self, content: LedgerContent, event_time_ms: int) -> int | None:
        """See ``Ledger``: an observation may be the skew off the clock, and the clock off its time since the start."""
        if self._skew is None:
            return None
        content.start = checked_start(content.start, self._clock, event_time_ms, self._skew)
        self._notice(content, self._skew)
        return self._clock.now() + milliseconds(self._skew)

    def _notice(self, content: LedgerContent, skew: timedelta) -> None:
        """Note which spendings are ahead of the clock, and since when."""
        jumped, looked = jump(content.looked, self._clock, skew)
        content.spent = noticed(content.spent, self._clock.now(), jumped, milliseconds(skew))
        content.looked = looked if any(each.seen is not None for each in content.spent) else None


class _Written(BaseModel):
    """What the file holds, in JSON: bytes in hexadecimal, and null for what a report without privacy spends."""

    model_config = _IN_HEX

    format: Literal[4] = 4
    salt: bytes
    kept: dict[str, bytes]
    spent: list[tuple[_Time, _Epsilon | None, _Time | None]]
    start: tuple[str, _StartTime] | None
    looked: tuple[str, _StartTime] | None

    @classmethod
    def of(cls, content: LedgerContent, path: Path) -> Self:
        """Return a content as it is written, unless it could not be read again; the message holds none of it."""
        spent = [(time, None if epsilon == math.inf else epsilon, seen) for time, epsilon, seen in content.spent]
        with contextlib.suppress(ValidationError):
            return cls(salt=content.salt, kept=content.kept, spent=spent, start=content.start, looked=content.looked)
        raise DataError(
            f"{plain(str(path))}: a ledger takes bytes, times since 1970 and budgets above 0 alone; check the clock"
        )

    def content(self) -> LedgerContent:
        spent = [Spending(time, math.inf if epsilon is None else epsilon, seen) for time, epsilon, seen in self.spent]
        start, looked = (None if each is None else Start(*each) for each in (self.start, self.looked))
        return LedgerContent(self.salt, self.kept, spent, start, looked)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[Callable[[], None]]:
    """Lock a file, which is created; give a function that raises a ValueError if the lock was lost meanwhile."""
    with locked_file(path) as lock:

        def check() -> None:
            if not is_at(lock, path):
                raise DataError(
                    f"{plain(str(path))}: was removed or replaced while a device held this lock, so the change is not"
                    " made; leave the file there, and report again"
                )

        yield check


class _LaterVersionError(DataError):
    """A later version of this project has written a ledger."""


def _read(path: Path) -> LedgerContent:
    name = plain(str(path))
    try:
        with open_regular(path) as file:
            if not others_may(os.fstat(file.fileno()), 0o077):
                return _parse(read_bounded(file, _MAX_BYTES))
    except FileNotFoundError:
        return LedgerContent()
    except OSError as error:
        raise DataError(file_error_text(error)) from None
    except _LaterVersionError:
        raise DataError(f"{name}: a later version of uldp has written this ledger; use that version") from None
    except ValueError as error:
        raise DataError(
            f"{name}: this is no ledger, or it is damaged ({error}); restore it, or remove it and spend all budgets"
            " once more"
        ) from None
    raise DataError(f"{name}: others may read this ledger, or write it; give it the mode 0600")


def _parse(written: bytes) -> LedgerContent:
    """Read what ``_write`` wrote; neither the message of an error nor another error behind it holds any of it."""
    value = parse_json(written)
    form = value.get("format") if isinstance(value, dict) else None
    if isinstance(form, int) and form > _FORMAT:
        raise _LaterVersionError
    with contextlib.suppress(ValidationError):
        return _Written.model_validate_json(written).content()
    raise DataError("other keys or values than a ledger has")


def _write(path: Path, content: LedgerContent, check: Callable[[], None]) -> None:
    """Write a content, and put it at its path if ``check`` raises no error."""
    text = _Written.of(content, path).model_dump_json()
    if len(text) > _MAX_BYTES:
        raise DataError(f"{plain(str(path))}: a ledger has at most {_MAX_BYTES:,} bytes; use a smaller domain")
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)  # a crash may have left it
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        check()
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)  # else a power cut could undo the renaming
