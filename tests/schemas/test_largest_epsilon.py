"""The largest epsilon of a spec."""

from typing import Any

import pytest

from tests import build
from uldp.schemas.specs.specfile import SpecError

NUMBER: dict[str, Any] = {"number": {"low": 0, "high": 1}}
RECORD: dict[str, Any] = {"record": {"app": {"size": 3}}}


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"mechanism": {"name": "rr", "epsilon": 20.5}}, "epsilon"),
        ({"mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 20.5}}, "lasting_epsilon"),
        ({"mechanism": {"name": "olh", "epsilon": 20.5}}, "epsilon"),
        ({"mechanism": {"name": "block", "epsilon": 20.5}, "domain": NUMBER}, "epsilon"),
        (
            {"mechanism": {"name": "sample-one", "epsilon": 20.5, "of": {"app": {"name": "rr"}}}, "domain": RECORD},
            "epsilon",
        ),
    ],
)
def test_an_epsilon_above_20_is_refused_with_the_reason(keys: dict[str, Any], key: str) -> None:
    reason = "with more, a reader can take each report for the truth, and above 30 the noise is finer than the draws"
    with pytest.raises(SpecError) as caught:
        build.spec(**keys)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"spec: mechanism.{key}: must be 20 or less: {reason}")
    assert line.endswith("(got 20.5)")
    allowed = {name: 20.0 if name == key else value for name, value in keys["mechanism"].items()}
    assert build.spec(**keys | {"mechanism": allowed})
