"""What PUM costs in accuracy: Table 1 of the ULDP paper, on the check-ins that the project ships.

    python -m benchmarks.manhattan --seeds 20 --users 179527

For uRR and uRAP, and for each kind of knowledge of where the users behind a tag are, it prints the l1 loss of p-hat
beside the two terms whose sum bounds it (Theorem 1):

    l1(p-hat, p) <= l1(r-hat, r) + sum_k r-hat(bot_k) l1(pi-hat_k, pi_k)

Source: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 6.2. The estimate is the maximum likelihood, to which EM converges in
the paper.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.bit_likelihood import maximize_bits
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats, Values
from uldp.schemas.specs.collection import CollectionSpec

EXAMPLE = Path(__file__).parents[1] / "examples" / "manhattan"
SEEDS, USERS = 20, 179_527

MECHANISMS: tuple[str, ...] = ("urr", "urap")
KNOWLEDGE = {"I": "none", "II": "POI distribution", "III": "true distribution"}

#: Table 1, means of 100 realizations: l1 loss, first and second term.
PAPER: Mapping[tuple[str, str], tuple[float, float, float]] = {
    ("urr", "I"): (0.0673, 0.0270, 0.0734),
    ("urr", "II"): (0.0424, 0.0270, 0.0296),
    ("urr", "III"): (0.0262, 0.0270, 0),
    ("urap", "I"): (0.0677, 0.0276, 0.0735),
    ("urap", "II"): (0.0428, 0.0276, 0.0296),
    ("urap", "III"): (0.0267, 0.0276, 0),
}


def estimate(mechanism: PureMechanism, symbols: Values, rng: np.random.Generator) -> Floats:
    """Obfuscate the users' symbols and return the maximum likelihood estimate of r."""
    if isinstance(mechanism, UnaryEncoding):
        return maximize_bits(mechanism, mechanism.perturb(symbols, rng)).distribution
    return exact_mle(mechanism.channel, mechanism.statistic(mechanism.perturb(symbols, rng)), len(symbols))


def theorem1_terms(r_hat: Floats, r: Floats, pi_hat: Floats, pi: Floats) -> tuple[float, float]:
    """Return the two terms of Theorem 1; their sum is at least l1(p-hat, p), by equation (23).

    The second term is sum_k max(r-hat(bot_k), 0) l1(pi-hat_k, pi_k); ``Pum.bound`` says why it has a maximum.

    Args:
        r_hat: Shape (|X| + kappa,): the estimate over Z.
        r: The true distribution over Z.
        pi_hat: Shape (kappa, |X|): the assumed distribution of the users behind each tag.
        pi: The true distribution of the users behind each tag.

    Returns:
        l1(r-hat, r), and the error that the background adds.
    """
    bots = r_hat[len(r_hat) - len(pi_hat) :]
    return float(np.abs(r_hat - r).sum()), float(np.maximum(bots, 0.0) @ np.abs(pi_hat - pi).sum(axis=1))


def measure(name: str, *, seeds: int = SEEDS, users: int = USERS, epsilon: float | None = None) -> dict[str, Floats]:
    """Simulate the collection once per seed.

    Args:
        name: The common mechanism, urr or urap. The rest of the spec is the example's.
        seeds: Realizations.
        users: Users in each, drawn i.i.d. from the example's population.
        epsilon: The budget of a report; by default that of the example, ln |X|.

    Returns:
        For each kind of knowledge, the l1 loss, the two terms, and the squared l2 loss of each realization, shape
        (seeds, 4).
    """
    spec = CollectionSpec.load(EXAMPLE / "spec.yaml")
    common = {"mechanism": {"name": name, "epsilon": epsilon or spec.mechanism.epsilon}, "estimator": "empirical"}
    keys = spec.model_dump(mode="json", exclude_none=True) | common
    mechanism = build_protocol(CollectionSpec.parse(keys, base=EXAMPLE)).mechanism
    assert isinstance(mechanism, PureMechanism)

    truth = Truth.load(EXAMPLE / "truth.csv", spec)
    ((values, tags),), weights, p, r = truth.columns, truth.probabilities, truth.distribution(), truth.intermediate()
    hidden = np.array([np.bincount(values, weights * (tags == tag), spec.size) for tag in range(len(spec.tags))])
    pi = hidden / hidden.sum(axis=1, keepdims=True)

    backgrounds = {"I": np.full_like(pi, np.nan), "II": spec.background, "III": pi}
    names = tuple(tag.name for tag in spec.tags)
    unknown = np.full(len(names), np.nan)
    pums = {knowledge: Pum(spec.sensitive_mask, names, known, unknown) for knowledge, known in backgrounds.items()}
    losses: dict[str, list[tuple[float, ...]]] = {knowledge: [] for knowledge in pums}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        r_hat = estimate(mechanism, Pum.of(spec.variables[""]).encode(truth.sample(users, rng), rng), rng)
        for knowledge, pum in pums.items():
            errors = pum.distribution(r_hat) - p
            terms = theorem1_terms(r_hat, r, pum.bot_distributions(r_hat), pi)
            losses[knowledge].append((float(np.abs(errors).sum()), *terms, float(errors @ errors)))
    return {knowledge: np.array(realizations) for knowledge, realizations in losses.items()}


def table(*, seeds: int, users: int) -> list[str]:
    """Return Table 1 in Markdown, with the figures of the paper beside it."""
    lines = [
        "| mechanism | knowledge | l1 | first term | second term | paper: l1 | first term | second term |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in MECHANISMS:
        for knowledge, losses in measure(name, seeds=seeds, users=users).items():
            figures = [*losses.mean(axis=0)[:3], *PAPER[name, knowledge]]
            row = " ".join(f"{figure:.4f} |" for figure in figures)
            lines.append(f"| {name} | ({knowledge}) {KNOWLEDGE[knowledge]} | {row}")
    return lines


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--users", type=int, default=USERS)
    arguments = parser.parse_args()
    print("\n".join(table(seeds=arguments.seeds, users=arguments.users)))


if __name__ == "__main__":
    main()
