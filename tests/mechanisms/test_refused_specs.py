"""Bad specs of every mechanism: each is one line with the key, the reason and, where there is one, a valid choice."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests import build
from tests.mechanisms.protocols import first_specs
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.specs.specfile import SpecError

EXAMPLES = first_specs()
#: The mechanisms with one epsilon: groups and levels have one each.
OF_ONE = [name for name in EXAMPLES if "epsilon" in family(name).model_fields]
#: Each key that a mechanism refuses.
REFUSED = [(name, key) for name in EXAMPLES for key in family(name).refuses]


def refusal(name: str, keys: Mapping[str, Any], **parameters: Any) -> str:
    """The one line about a spec of a mechanism with other keys, and with other parameters of the mechanism."""
    example = EXAMPLES[name]
    with pytest.raises(SpecError) as caught:
        build.spec(**(example | {"mechanism": example["mechanism"] | parameters} | dict(keys)))
    (line,) = str(caught.value).splitlines()
    return line.removeprefix("spec: ")


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize(
    ("epsilon", "reason"),
    [
        (0, "mechanism.epsilon: must be "),
        (-1, "mechanism.epsilon: must be "),
        (math.nan, "mechanism.epsilon: must be "),
        (math.inf, "mechanism.epsilon: must be 20 or less"),
        ("1.0", "mechanism.epsilon: must be a number (got '1.0'; write it without quotes)"),
        (True, "mechanism.epsilon: must be a number (got true)"),
        (None, " needs epsilon, for example epsilon: 1.0"),
    ],
)
def test_an_epsilon_that_is_none(name: str, epsilon: Any, reason: str) -> None:
    assert reason in refusal(name, {}, epsilon=epsilon)


@pytest.mark.parametrize(("name", "key"), REFUSED)
def test_a_key_that_the_mechanism_refuses(name: str, key: str) -> None:
    assert refusal(name, {}, **{key: 1.0}) == f"mechanism: {family(name).refuses[key]}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_other_mistakes(name: str) -> None:
    model = build.spec(**EXAMPLES[name]).mechanism.obfuscates
    assert "mechanism.thet: unknown key" in refusal(name, {}, thet=0.5)
    theta = refusal(name, {}, theta=1.5)
    assert ("less than 1" in theta and theta.endswith("(got 1.5)")) or f"{name} takes no theta; only " in theta
    assert "; write {name: " in refusal(name, {"mechanism": name})
    if model.domain_kind in ("values", "number"):
        if not model.utility_optimized:
            assert refusal(name, {"sensitive": [0]}).startswith(f"{name} protects every ")
        if not model.takes_tags:
            line = refusal(name, {"tags": [{"name": "home"}]})
            assert "so it cannot be the common mechanism; choose " in line or "remove tags" in line


OF_FIVE = {"of": {"size": 5}, "at_most": 3}


@pytest.mark.parametrize("kept", [{}, {"lasting_epsilon": 2.0}, {"sizes": 0.2}])
@pytest.mark.parametrize(
    ("domain", "most"), [({"set": OF_FIVE}, 5), ({"pairs": OF_FIVE | {"low": 0, "high": 1}}, 10)], ids=["set", "pairs"]
)
def test_a_report_of_so_many_symbols_that_it_always_has_a_held_one(
    domain: dict[str, Any], most: int, kept: dict[str, float]
) -> None:
    if "pairs" in domain and "sizes" in kept:
        kept = {}
    mechanism = {"name": "set-ss", "epsilon": 1.0} | kept
    build_protocol(build.spec(domain=domain, mechanism=mechanism | {"w": most}))
    reason = rf"mechanism\.w: a report has 1 to {most} of .*; write {most} or less, or auto"
    for w in (most + 1, most + 2, most + 3, 1_000):
        with pytest.raises(SpecError, match=reason):
            build.spec(domain=domain, mechanism=mechanism | {"w": w})
    with pytest.raises(SpecError, match=r"mechanism\.w: must be 1 or more \(got 0\)"):
        build.spec(domain=domain, mechanism=mechanism | {"w": 0})


def test_a_report_of_so_many_symbols_that_floats_do_not_tell_which_a_device_holds() -> None:
    domain = {"set": {"of": {"size": 10_000}, "at_most": 8}}
    spec = build.spec(domain=domain, mechanism={"name": "set-ss", "epsilon": 1.0, "w": 9_990})
    with pytest.raises(ValueError, match=r": w 9,990: .* says nothing with epsilon 1; take a smaller w$"):
        build_protocol(spec)


@pytest.mark.parametrize("name", ["rappor", "urap"])
@pytest.mark.parametrize("theta", [1e-300, 1e-18])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0])
def test_a_theta_so_near_an_end_that_nothing_is_told_names_theta(name: str, theta: float, epsilon: float) -> None:
    keys = {"domain": {"size": 5}, "sensitive": "all" if name == "rappor" else [0, 1]}
    spec = build.spec(**keys, mechanism={"name": name, "epsilon": epsilon, "theta": theta})
    with pytest.raises(ValueError, match=r": theta .* is so near an end .*; take a theta nearer to 0\.5"):
        build_protocol(spec)
    build_protocol(build.spec(**keys, mechanism={"name": name, "epsilon": epsilon, "theta": 0.5}))


@pytest.mark.parametrize("name", ["rappor", "urap"])
def test_a_theta_so_near_1_that_floats_would_break_epsilon_is_refused(name: str) -> None:
    keys = {"domain": {"size": 5}, "sensitive": "all" if name == "rappor" else [0, 1]}
    with pytest.raises(SpecError, match=r"theta: must be more than 0 and less than 1, and 0\.999999 at most"):
        build.spec(**keys, mechanism={"name": name, "epsilon": 1.0, "theta": 1 - 1e-13})
    most = build_protocol(build.spec(**keys, mechanism={"name": name, "epsilon": 1.0, "theta": 1 - 1e-6}))
    channel = most.mechanism.channel
    assert channel is not None
    p, q = float(channel.p[0]), float(channel.q[0])
    # Of a report whose bit of one value is set, and of another's not, by users with the one and with the other.
    assert math.log(p * (1 - q) / (q * (1 - p))) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if family(name).needs])
def test_an_epsilon_that_is_too_small_names_the_collection_if_it_is_refused(name: str) -> None:
    keys = EXAMPLES[name] | {"mechanism": EXAMPLES[name]["mechanism"] | {"epsilon": 1e-300}}
    with pytest.raises(ValueError, match=r"^(collection c version 1|spec): .*epsilon"):
        build_protocol(CollectionSpec.parse(build.MINIMAL | keys))
