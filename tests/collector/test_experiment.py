"""Experiments without collections: the face of ``uldp``, held to the protocols of specs."""

import math
import subprocess
import sys

import numpy as np
import pytest

import uldp
from tests.build import spec
from tests.mechanisms.protocols import Example, examples
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held

VALUES = np.repeat([0, 1, 2], [5000, 3000, 2000])


def urr_of_two() -> uldp.Protocol:
    return uldp.protocol("urr", size=2, sensitive=[0], tags=["home"], epsilon=1.0)


def test_estimates_are_those_of_a_spec() -> None:
    oue = uldp.protocol("oue", size=5, epsilon=1.0)
    steps = build_protocol(spec(mechanism={"name": "oue", "epsilon": 1.0}))
    payloads = steps.perturb([Held(VALUES, np.full(len(VALUES), -1))], np.random.default_rng(3))
    sample = oue.simulate(VALUES, seed=3)
    np.testing.assert_array_equal(sample.payloads, payloads)
    (table,) = steps.decoder.tables(steps.mechanism.statistic(payloads), len(VALUES), "auto")
    np.testing.assert_array_equal(sample.estimate("auto").values, table.values)


def test_lists_and_labels_are_as_good_as_arrays_and_indices() -> None:
    labels = ["never", "once", "often"]
    urr = uldp.protocol("urr", domain=labels, sensitive=["often"], tags=["home"], epsilon=1.0)
    by_index = urr.perturb([0, 1, 2] * 50, hidden=[-1, 0, -1] * 50, seed=5)
    by_label = urr.perturb(labels * 50, hidden=["", "home", ""] * 50, seed=5)
    np.testing.assert_array_equal(by_index, by_label)
    np.testing.assert_array_equal(urr.counts(by_index.tolist()), urr.counts(by_index))


def test_equal_seeds_give_equal_samples_and_no_seed_gives_another() -> None:
    rr = uldp.protocol("rr", size=3, epsilon=1.0)
    one, same, other = (rr.perturb(VALUES, seed=seed) for seed in (1, 1, None))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize(
    ("counts", "n", "error"),
    [([1000, 1000], 1000, "sum to 2000"), ([1000, -1], 999, "the least is -1"), ([1, 2, 3], 6, "shape")],
)
def test_counts_that_no_reports_give_are_refused(counts: list[int], n: int, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        uldp.protocol("rr", size=2, epsilon=1.0).estimate(counts, n)


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: uldp.protocol("rr", epsilon=1.0), "give the size of the domain"),
        (lambda: uldp.protocol("rr", size=2, domain=["a", "b"], epsilon=1.0), "give the size of the domain"),
        (lambda: uldp.protocol("rr", size=2, epsilon=-1.0), "rr: mechanism.epsilon"),
        (lambda: uldp.protocol("rr", domain=["a", "b"], epsilon=1.0).perturb(["c"]), "not a label of the domain"),
        (lambda: uldp.protocol("rr", size=2, epsilon=1.0).perturb(1), "give a list or an array"),
        (lambda: urr_of_two().perturb([1], hidden=["away"]), "none of home"),
        (lambda: uldp.protocol("rr", size=2, epsilon=1.0).perturb([2]), "outside of the domain"),
        (lambda: uldp.protocol("rr", size=2, epsilon=1.0).counts([2]), "sends no such payload"),
        (lambda: uldp.protocol("rr", size=2, epsilon=1.0).estimate([1, 1], 2, "best"), "no estimator 'best'"),
        (lambda: uldp.compare([uldp.protocol("rr", size=2, epsilon=1.0)], [1, 1, 1], 9), "has 3 values"),
        (lambda: uldp.compare([uldp.protocol("rr", size=2, epsilon=1.0)], [0, 0], 9), "not all 0"),
        (lambda: uldp.compare([uldp.protocol("rr", size=2, epsilon=1.0)], [1, 1], 0), "users and windows are 1"),
        (lambda: uldp.protocol("rr", domain=[18, 19], epsilon=1.0), "labels are text"),  # type: ignore[list-item]
        (
            lambda: uldp.compare(
                [uldp.protocol("duchi", domain={"number": {"low": 0, "high": 1}}, epsilon=1.0)], [1], 9
            ),
            "not estimate shares",
        ),
    ],
)
def test_errors_say_what_to_give(ask: object, error: str) -> None:
    assert callable(ask)
    with pytest.raises(
        uldp.UldpError if not {"outside", "estimator", "label"} & set(error.split()) else ValueError, match=error
    ):
        ask()


def test_a_comparison_ranks_by_the_error_that_simulations_have() -> None:
    truth, users = 1 / np.arange(1, 21), 5000
    rr, oue = (uldp.protocol(name, size=20, epsilon=1.0) for name in ("rr", "oue"))
    first, second = uldp.compare([rr, oue], truth, users)
    assert (first.protocol, second.protocol) == (oue, rr)
    rng, shares = np.random.default_rng(8), truth / truth.sum()
    for protocol, expected in ((oue, first), (rr, second)):
        errors = []
        for _ in range(40):
            held = rng.choice(20, users, p=shares)
            errors.append(np.abs(protocol.simulate(held, seed=rng).estimate().values - shares).sum())
        # The means of 30 and of 40 windows.
        z = (np.mean(errors) - expected.l1) / math.hypot(np.std(errors, ddof=1) / np.sqrt(40), expected.l1_stderr)
        assert abs(z) < 4


@pytest.mark.parametrize("name", [name for name, each in examples().items() if len(each.spec.variables) == 1])
def test_each_mechanism_has_estimates_without_devices(name: str) -> None:
    example: Example = examples()[name]
    (held,) = example.hold(np.random.default_rng(4), 300)
    sample = uldp.Protocol(example.spec).simulate(held.values, hidden=held.tags, seed=4)
    assert sample.counts.shape == (example.protocol.mechanism.statistic_size,)
    assert all(table.n <= 300 for table in sample.tables())


def test_a_record_is_refused() -> None:
    with pytest.raises(uldp.UldpError, match="one variable"):
        uldp.Protocol(next(each.spec for each in examples().values() if len(each.spec.variables) > 1))


def test_an_experiment_imports_little() -> None:
    program = (
        "import sys, uldp\n"
        "assert 'numpy' not in sys.modules\n"
        "uldp.protocol('oue', size=100, epsilon=1.0)\n"
        "print(*(name for name in ('apache_beam', 'grpc', 'scipy') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
