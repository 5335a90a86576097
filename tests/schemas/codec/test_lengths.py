"""Reports that are too short or too long, against the plain decoder, which is the reference."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas.codec.test_columnar import KEYS, LAYOUTS, MESSAGES, report
from uldp.schemas.codec import columnar, lengths
from uldp.schemas.codec.lengths import misfits
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.framing import MalformedBodyError, TruncatedBodyError, report_store


@pytest.fixture(autouse=True, scope="module")
def _small_matrices() -> Iterator[None]:
    """Let even a single message make a matrix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lengths, "MIN_ROWS", 1)
        patch.setattr(columnar, "MIN_ROWS", 1)
        yield


def found_in(messages: list[bytes]) -> tuple[list[int], list[int]]:
    """Cut and overlong messages, all of which the plain decoder refuses so."""
    cut, overlong = misfits(Bodies.of(messages), np.arange(len(messages)), LAYOUTS)
    for rows, error in ((cut, TruncatedBodyError), (overlong, MalformedBodyError)):
        for row in rows.tolist():
            with pytest.raises(error):
                report_store().decode(messages[row])
    return cut.tolist(), overlong.tolist()


@pytest.mark.parametrize("time", [0, -1, 1_767_258_000, 1_767_258_000_000, 2**55 - 1])
@pytest.mark.parametrize("key", KEYS)
def test_each_cut_behind_the_version_is_found_and_each_byte_more(key: tuple[str, int], time: int) -> None:
    message = report(time, 600 if KEYS[key] is None else bytes(range(KEYS[key] or 0)), key)
    layout = LAYOUTS[[*KEYS].index(key)]
    # Where the length of a bit payload is cut, the plain decoder has to look.
    length = len(message) - (layout.width or 0)
    left = range(length - len(layout.payload_prefix) + 1, length) if layout.width is not None else range(0)
    ends = [end for end in range(len(layout.prefix), len(message)) if end not in left]
    cut = [message[:end] for end in ends]
    longer = [message + bytes([byte]) * n for byte in (0, 0x7F, 0x80, 0xFF) for n in (1, 7, 8, 9)]
    messages = [*cut, message, *longer]
    assert found_in(messages) == ([*range(len(cut))], [*range(len(cut) + 1, len(messages))])


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(MESSAGES, max_size=8))
def test_what_is_found_is_what_the_plain_decoder_says(messages: list[bytes]) -> None:
    found_in(messages)
