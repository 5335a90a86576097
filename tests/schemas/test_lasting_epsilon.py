"""The key ``lasting_epsilon``: the budget of all reports of one value."""

from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.mechanism import PureMechanism
from uldp.mechanisms.memoized import Memoized
from uldp.schemas.specfile import SpecError

OF_TWO = {"warner", "mangat"}
MEMOIZABLE = ["rr", "warner", "mangat", "urr", "rappor", "sue", "oue", "urap", "uoue"]


def keys(name: str, **parameters: Any) -> dict[str, Any]:
    theta = {"theta": 0.7} if name == "rappor" else {}
    return {
        "domain": {"size": 2 if name in OF_TWO else 5},
        "sensitive": [1] if name in {"mangat", "urr", "urap", "uoue"} else "all",
        "mechanism": {"name": name, "epsilon": 1.0} | theta | parameters,
    }


@pytest.mark.parametrize("lasting", [1.0, 3.0, 20])
@pytest.mark.parametrize("name", MEMOIZABLE)
def test_reports_have_the_channel_of_a_spec_without_memory(name: str, lasting: float) -> None:
    without = build_protocol(build.spec(**keys(name))).mechanism
    memoized = build_protocol(build.spec(**keys(name, lasting_epsilon=lasting))).mechanism
    assert isinstance(memoized, Memoized)
    assert isinstance(without, PureMechanism)
    assert (memoized.guarantee.epsilon, memoized.guarantee.lasting) == (1.0, lasting)
    assert memoized.channel.p.tolist() == without.channel.p.tolist()
    assert memoized.channel.q.tolist() == without.channel.q.tolist()


def test_devices_must_know_it() -> None:
    digests = {
        build.spec(**keys("urr", **given)).channel for given in ({}, {"lasting_epsilon": 2.0}, {"lasting_epsilon": 3.0})
    }
    assert len(digests) == 3
    assert build.spec(**keys("urr")).channel == build.spec(**keys("urr", lasting_epsilon=None)).channel


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (keys("urr", lasting_epsilon=0.9), r"lasting_epsilon: must be at least epsilon, .* \(1\)"),
        (keys("urr", lasting_epsilon=21.0), "lasting_epsilon: must be 20 or less"),
        (keys("olh", lasting_epsilon=2.0), "olh takes no lasting_epsilon; only rr, warner, mangat, urr, rappor"),
        (
            {
                "domain": {"record": {"app": {"size": 5}}},
                "mechanism": {
                    "name": "sample-one",
                    "epsilon": 1.0,
                    "of": {"app": {"name": "urr", "lasting_epsilon": 2.0}},
                },
            },
            "'app' cannot have lasting_epsilon, because a device draws an attribute for each report",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(SpecError, match=match):
        build.spec(**changes)
