"""The keys ``budget``, what a user may spend over time, and ``lasting_epsilon``, what reports of one value spend."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import alternatives, first_specs
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.mechanism import WithMemory
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.specs.specfile import SpecError

EXAMPLES = first_specs()
TAKE_IT = [
    name
    for name in EXAMPLES
    if "lasting_epsilon" in family(name).model_fields and "lasting_epsilon" not in family(name).refuses
]


def keys(name: str, **parameters: Any) -> dict[str, Any]:
    """The first example of a mechanism, with an epsilon of 1 and these parameters."""
    example = EXAMPLES[name]
    given = {key: value for key, value in example["mechanism"].items() if key != "lasting_epsilon"}
    return example | {"mechanism": given | {"epsilon": 1.0} | parameters}


def of_strata(name: str) -> bool:
    """Whether it splits its reports by attribute or by design, each with a mechanism of its own."""
    return isinstance(build_protocol(build.spec(**keys(name))).mechanism, Strata)


@pytest.mark.parametrize("lasting", [1.0, 3.0, 20])
@pytest.mark.parametrize("name", [name for name in TAKE_IT if not of_strata(name)])
def test_the_collector_reads_reports_as_those_of_a_spec_without_memory(name: str, lasting: float) -> None:
    without = build_protocol(build.spec(**keys(name)))
    memoized = build_protocol(build.spec(**keys(name, lasting_epsilon=lasting)))
    mechanism = memoized.mechanism
    assert isinstance(mechanism, WithMemory)
    exact = {epsilon: build_protocol(build.spec(**keys(name, epsilon=epsilon))) for epsilon in (1.0, lasting)}
    promised = [exact[epsilon].mechanism.guarantee.epsilon for epsilon in (1.0, lasting)]
    assert [mechanism.guarantee.epsilon, mechanism.guarantee.lasting] == promised
    assert promised == [1.0, lasting] or name == "the"  # whose bits promise more than its noise
    assert list(memoized.decoder.describe(1000, "auto")) == list(without.decoder.describe(1000, "auto"))
    payloads = mechanism.perturb(
        np.random.default_rng(0).choice(alternatives(mechanism)[0], 500), np.random.default_rng(1)
    )
    assert without.mechanism.possible(payloads).all()
    cells = without.mechanism.statistic(payloads)
    assert mechanism.statistic(payloads).tolist() == cells.tolist()
    of_both = [protocol.decoder.tables(cells, 500, "empirical")[0] for protocol in (memoized, without)]
    assert of_both[0].values.tolist() == of_both[1].values.tolist()


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in TAKE_IT])
def test_each_other_mechanism_refuses_it(name: str) -> None:
    mechanism = EXAMPLES[name]["mechanism"] | {"lasting_epsilon": 2.0}
    with pytest.raises(SpecError, match=r"lasting_epsilon"):
        build.spec(**EXAMPLES[name] | {"mechanism": mechanism})


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (keys("urr", lasting_epsilon=0.9), r"lasting_epsilon: must be at least epsilon, .* \(1\)"),
        (keys("urr", lasting_epsilon=21.0), "lasting_epsilon: must be 20 or less"),
        (
            {"mechanism": {"name": "identity", "lasting_epsilon": 2.0}},
            "identity takes no lasting_epsilon; only rr, warner",
        ),
        (keys("she", epsilon=0.002, lasting_epsilon=2.0), "epsilon: must be 0.0025 or more: .*; choose sue"),
        (
            {
                "domain": {"record": {"app": {"size": 5}}},
                "mechanism": {
                    "name": "sample-one",
                    "epsilon": 1.0,
                    "of": {"app": {"name": "urr", "lasting_epsilon": 2.0}},
                },
            },
            "'app' has the lasting_epsilon of sample-one; move its own there",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(SpecError, match=match):
        build.spec(**changes)


def test_a_spec_names_a_budget_and_a_period() -> None:
    spec = build.spec(budget={"epsilon": 4, "every": "30d"})
    assert spec.budget == Budget(epsilon=4, every=timedelta(days=30))
    assert str(spec.budget) == "epsilon 4 every 30d"
    assert build.spec().budget is None
    assert spec.device_digest == build.spec().device_digest


def test_a_record_keeps_it() -> None:
    budget = Budget(epsilon=0.5, every=timedelta(hours=36))
    assert budget.to_avro() == {"epsilon": 0.5, "every_ms": 36 * build.HOUR}
    assert Budget.from_avro(budget.to_avro()) == budget


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": {"epsilon": 4}}, "budget.every: missing; add it"),
        ({"budget": {"epsilon": 0, "every": "1d"}}, "budget.epsilon: must be more than 0 (got 0)"),
        ({"budget": {"epsilon": 4, "every": "9999d"}}, "must be more than 0 and at most 3650d (got '9999d')"),
        (
            {"budget": {"epsilon": 0.5, "every": "1d"}},
            "budget.epsilon must be 1 or more, which is mechanism.epsilon: a report spends this much",
        ),
        (
            {
                "budget": {"epsilon": 2, "every": "1d"},
                "mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 3.0},
            },
            "budget.epsilon must be 3 or more, which is mechanism.lasting_epsilon: two of a value spend this much",
        ),
        (
            {"budget": {"epsilon": 2, "every": "1d"}, "mechanism": {"name": "identity"}},
            "budget: identity gives no privacy, so nothing bounds what it spends; remove budget",
        ),
    ],
)
def test_mistakes_in_a_budget_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**changes)
    assert str(caught.value).endswith(message)
