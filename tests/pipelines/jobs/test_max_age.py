"""The age that reports may have by default, which bounds the windows that a sender can open."""

from datetime import timedelta

import pytest

from tests import build
from uldp.schemas.specs.specfile import SpecError

YEAR, SLICES = timedelta(days=365), 10_000


@pytest.mark.parametrize(
    ("window", "age"),
    [
        ({"size": "1h"}, YEAR),
        ({"size": "1m"}, SLICES * timedelta(minutes=1)),
        ({"size": "1d", "period": "1m"}, SLICES * timedelta(minutes=1)),
        ({"size": "1s", "allowed_lateness": "1d"}, timedelta(days=1, seconds=1)),
        ({"size": "6d", "period": "1m", "allowed_lateness": "2d"}, timedelta(days=8)),
        ({"size": "365000d"}, timedelta(days=365_000)),
    ],
)
def test_by_default_a_sender_opens_ten_thousand_windows_at_most(window: dict[str, str], age: timedelta) -> None:
    assert build.spec(window=window).max_age == age


def test_a_window_that_no_text_could_name_is_refused() -> None:
    with pytest.raises(SpecError, match=r"window: size must be 365000d or less"):
        build.spec(window={"size": "365001d"})
