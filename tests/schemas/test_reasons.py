"""Reasons for rejection."""

import pytest

from uldp.schemas.reasons import MEANING, Reason

#: On disk and in dashboards: a name may be added, never changed.
NAMES = {
    "not_avro",
    "registry_framing",
    "unknown_schema",
    "truncated",
    "malformed",
    "too_large",
    "unknown_collection",
    "unknown_version",
    "retired_version",
    "wrong_payload",
    "wrong_length",
    "out_of_domain",
    "impossible_payload",
    "invalid_time",
    "too_early",
    "expired",
    "too_many_windows",
    "over_sender_limit",
}


def test_names_are_stable() -> None:
    assert {str(reason) for reason in Reason} == NAMES


@pytest.mark.parametrize("reason", Reason)
def test_a_meaning_is_one_line_of_its_own(reason: Reason) -> None:
    meaning = MEANING[reason]
    assert meaning.strip() == meaning
    assert len(meaning.splitlines()) == 1
    assert list(MEANING.values()).count(meaning) == 1
