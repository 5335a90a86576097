"""Which specs a running job takes: what is new opens, and what is retired closes, behind all that was read."""

from typing import Any

import pytest

from tests.build import HOUR, START, spec
from uldp.collector.admission import Admission
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.durations import format_moment, milliseconds_of, moment_at

ADMISSION = Admission(sender_key=False, caps_senders=False)


def text(milliseconds: int) -> str:
    return format_moment(moment_at(milliseconds))


@pytest.mark.parametrize(
    ("keys", "latest", "opens"),
    [
        ({}, None, None),
        ({}, START, START + 1),
        ({"opens": text(START - HOUR)}, None, START - HOUR),
        ({"opens": text(START - HOUR)}, START, START + 1),
        ({"opens": text(START + HOUR)}, START, START + HOUR),
    ],
)
def test_a_new_spec_opens_behind_what_was_read(keys: dict[str, Any], latest: int | None, opens: int | None) -> None:
    taken = ADMISSION.of_new(spec(**keys), latest)
    assert taken.opens == (None if opens is None else moment_at(opens))


@pytest.mark.parametrize(
    ("before", "now", "closes"),
    [
        ({}, {"retired": True}, START + 1),
        ({}, {"closes": text(START - HOUR)}, START + 1),
        ({}, {"closes": text(START + HOUR)}, START + HOUR),
        ({"closes": text(START + HOUR)}, {"closes": text(START + 2 * HOUR)}, START + 2 * HOUR),
        ({"closes": text(START + HOUR)}, {}, None),
        ({"closes": text(START + HOUR)}, {"retired": True}, START + 1),
        ({"closes": text(START)}, {"retired": True}, START),
        ({"closes": text(START)}, {"closes": text(START - HOUR)}, START),
    ],
)
def test_a_retired_spec_closes_behind_what_was_read(
    before: dict[str, Any], now: dict[str, Any], closes: int | None
) -> None:
    taken = ADMISSION.of_known(spec(**before), spec(**now), START)
    assert (taken.retired, taken.closes) == (False, None if closes is None else moment_at(closes))


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({}, {"domain": {"size": 6}}, r"^domain\.size has changed, and the job has counted by it; raise the version$"),
        ({}, {"window": {"size": "2h"}}, r"^window\.size has changed"),
        ({}, {"window": {"size": "1h", "allowed_lateness": "1h"}}, r"^window\.allowed_lateness has changed"),
        ({}, {"limits": {"max_age": "2h"}}, r"^limits\.max_age has changed"),
        ({}, {"limits": {"max_clock_skew": "2h"}}, r"^limits\.max_clock_skew has changed"),
        ({}, {"dedup": "exact"}, r"^dedup has changed"),
        ({}, {"opens": text(START)}, "^opens is later than when the job began to count; write that"),
        ({"opens": text(START)}, {"opens": text(START + 1)}, "^opens is later .*, 2026-01-01T09:00:00Z; write that"),
        ({"retired": True}, {}, "^the version is retired, and stays so; raise the version$"),
        ({"closes": text(START)}, {}, "^the version is closed, and stays so; raise the version$"),
        ({"closes": text(START)}, {"closes": text(START + 1)}, "^the version is closed, and stays so"),
        ({}, {"limits": {"max_reports_per_sender": 5}}, r"^limits\.max_reports_per_sender: .*; start it again$"),
        (
            {},
            {"limits": {"max_reports_per_sender": 5, "cap_senders": True}},
            r"^limits\.cap_senders: .* start it again$",
        ),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_its_key_with_the_remedy(
    before: dict[str, Any], now: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        ADMISSION.of_known(spec(**before), spec(**now), START)


def test_the_reading_half_changes_and_the_times_stay() -> None:
    before = spec(opens=text(START - HOUR), closes=text(START + HOUR))
    taken = ADMISSION.of_known(before, spec(estimator="mle", closes=text(START + HOUR)), START)
    assert (taken.estimators, taken.opens, taken.closes) == (["mle"], before.opens, before.closes)


def test_moments_are_whole_milliseconds_of_any_time_zone() -> None:
    opens = spec(opens="2026-01-01T10:00+01:00").opens
    assert opens is not None
    assert milliseconds_of(opens) == START
    assert text(START + 7) == "2026-01-01T09:00:00.007Z"
