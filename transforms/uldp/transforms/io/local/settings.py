"""The settings of a local stream, a small file in its directory, which commands alone write."""

import json
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from uldp.schemas.regular_files import read_json
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.strict import Strict
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import STREAM_SETTINGS
from uldp.transforms.io.local.given_up import GivenUp, disordered
from uldp.transforms.io.message_files import StreamError

_FORM = '[{"first": 3, "last": 3, "messages": 150, "exact": true, "after": 1767225600000, "before": 1767229200000}]'


class StreamSettings(Strict):
    """The settings of a local stream."""

    simulated_clock: bool  # as in ``LocalStream``
    id: str  # as in ``LocalStream``
    first: int = 0  # as in ``LocalStream``
    given_up: tuple[GivenUp, ...] = ()  # what was given up, in order
    end: int = 0  # when segments were last given up, all numbers before this one had been written; 0 if none were

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the settings; FileNotFoundError or NotADirectoryError if there are none, StreamError if damaged."""
        path = folder / STREAM_SETTINGS
        try:
            return cls.model_validate_json(json.dumps(read_json(path)))
        except (ValueError, RecursionError) as error:
            if isinstance(error, ValidationError) and {each["loc"][:1] for each in error.errors()} == {("given_up",)}:
                raise _wrong(path, "holds no segments that were given up") from None
            raise StreamError(
                f"{plain(str(path))}: not the settings of a local stream; restore the original file"
            ) from error

    def write(self, folder: Path) -> None:
        """Write them in one step, so that the disk has them; OSError if the operating system refuses it."""
        left_out = set() if self.given_up else {"given_up", "end"}
        text = json.dumps(self.model_dump(exclude=left_out))
        write_file(str(folder / STREAM_SETTINGS), f"{text}\n".encode())

    def refuse_impossible(self, folder: Path, end: int) -> None:
        """Refuse impossible numbers of segments by StreamError; ``end`` is behind the last, as far as known, or 0."""
        end = max(end, self.end)
        if self.first < 0 or self.first > end > 0:
            raise StreamError(
                f'{plain(str(folder / STREAM_SETTINGS))}: "first" is {self.first}, not a number from 0 to {end};'
                " restore the original file"
            )
        if disordered(self.given_up, end):
            raise _wrong(folder / STREAM_SETTINGS, f"does not ascend, or does not end before segment {end}")


def _wrong(path: Path, what: str) -> StreamError:
    return StreamError(
        f'{plain(str(path))}: "given_up" {what}; restore the original file, in which uldp give-up has written it in'
        f" this form: {_FORM}"
    )
