"""Progress on stderr, as blocks take minutes."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Each = TypeVar("Each")
# Seconds between two lines.
_EVERY = 20


def shown(block: str, settings: Sequence[Each]) -> Iterator[Each]:
    """Yield settings, and say now and then which one is measured."""
    said = began = time.monotonic()
    for number, setting in enumerate(settings):
        if time.monotonic() - said > _EVERY:
            said = time.monotonic()
            print(f"{said - began:5.0f} s  {block}: {number} of {len(settings)}", file=sys.stderr, flush=True)
        yield setting
