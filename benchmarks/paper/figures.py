"""The experiments of section 6 of the ULDP paper, figure by figure."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.manhattan import measure
from benchmarks.paper.losses import COMPARED, FROM_COUNTS, MAXIMUM, Effort, Loss, losses
from benchmarks.paper.populations import CENSUS_OF_NINE, census, manhattan

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
SENSITIVE = (1, 5, 20, 50, 100, 200, 400, 625)
ATTRIBUTES = (4, 5, 6, 7, 8, 9)
#: n of Figure 7.
USERS_OF_ATTRIBUTES = 240_000


def over_epsilon(effort: Effort) -> Iterator[Loss]:
    """Figure 5, and 10 for the MSE: epsilon."""
    for population in (manhattan(), census()):
        for epsilon in effort.some(EPSILONS):
            yield from losses(population, epsilon, epsilon, effort)


def over_sensitive(effort: Effort) -> Iterator[Loss]:
    """Figure 6, and 11 for the MSE: |X_S|, chosen at random, at a small epsilon and at ln |X|."""
    protect_some = {label: name for label, name in COMPARED.items() if label.startswith("u")}
    protect_all = {label: name for label, name in COMPARED.items() if label not in protect_some}
    for population in (manhattan(), census()):
        size = len(population.p)
        order = np.random.default_rng(6).permutation(size)
        for epsilon in (0.1, math.log(size)):
            named = replace(population, name=f"{population.name}, ε = {epsilon:.3g}")
            # These do not depend on X_S, and take the longest: they are measured once.
            same = list(losses(named, 0, epsilon, effort, protect_all))
            for v in effort.some([v for v in SENSITIVE if v <= size]):
                yield from (replace(row, x=v) for row in same)
                chosen = replace(named, sensitive=np.isin(np.arange(size), order[: int(v)]))
                yield from losses(chosen, v, epsilon, effort, protect_some)


def over_attributes(effort: Effort) -> Iterator[Loss]:
    """Figure 7, and 12 for the MSE: attributes of the census; only four, if the model of nine is not at hand."""
    at_hand = ATTRIBUTES if CENSUS_OF_NINE.exists() else ATTRIBUTES[:1]
    for epsilon in (0.1, 1.0, 6.0):
        # The time grows with the number of values, so the quick points are not those in the middle.
        for attributes in at_hand[:2] if effort.quick else at_hand:
            name = f"census, ε = {epsilon:g}"
            population = replace(census(int(attributes)), name=name, users=USERS_OF_ATTRIBUTES)
            yield from losses(population, attributes, epsilon, effort)


def over_knowledge(effort: Effort) -> Iterator[Loss]:
    """Figure 8, and 13 for the MSE: PUM, by the knowledge of where the users behind a tag are."""
    names: dict[str, str] = {"uRR": "urr", "uRAP": "urap"}
    for label, name in names.items():
        for epsilon in effort.some(EPSILONS):
            realizations = effort.realizations if name == "urr" else effort.of_reports
            measured = measure(name, seeds=realizations, epsilon=epsilon) if realizations else {}
            for knowledge, found in measured.items():
                l1, squared = found[:, 0].mean(), found[:, 3].mean()
                mechanism = f"{label} ({knowledge})"
                yield Loss("manhattan", epsilon, mechanism, MAXIMUM, math.nan, l1 / 2, squared, realizations)


FIGURES = {"5": over_epsilon, "6": over_sensitive, "7": over_attributes, "8": over_knowledge}
ABSCISSAS = {"5": "ε", "6": "|X_S|", "7": "attributes", "8": "ε"}


def draw(figure: str, rows: list[Loss], path: Path) -> None:
    """Draw the total variation, above, and the MSE: a column for each population, a line for each curve."""
    from matplotlib.figure import Figure

    populations = list(dict.fromkeys(row.population for row in rows))
    curves = list(dict.fromkeys((row.mechanism, row.estimator) for row in rows))
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _ in curves))
    styles = dict(zip((*FROM_COUNTS, MAXIMUM), ("-", "--", ":", "-.", (0, (5, 1, 1, 1))), strict=True))
    image = Figure(figsize=(5 * len(populations) + 2, 9), layout="constrained")
    for axes, population in zip(image.subplots(2, len(populations), squeeze=False).T, populations, strict=True):
        for mechanism, estimator in curves:
            points = [
                row
                for row in rows
                if (row.population, row.mechanism, row.estimator) == (population, mechanism, estimator)
            ]
            marker = "^" if estimator == MAXIMUM else "."
            look = {"color": f"C{mechanisms.index(mechanism)}", "linestyle": styles[estimator], "marker": marker}
            x = [row.x for row in points]
            axes[0].plot(x, [row.variation for row in points], label=f"{mechanism}, {estimator}", **look)
            axes[1].plot(x, [row.squared for row in points], **look)
            if estimator == "emp":
                axes[0].plot(x, [row.expected for row in points], "x", color=look["color"])
        for ax, label in zip(axes, ("total variation; x: (12) and (17)", "MSE"), strict=True):
            ax.set_yscale("log")
            ax.set_xscale("linear" if figure == "7" else "log")
            ax.set_ylabel(label)
            ax.set_xlabel(ABSCISSAS[figure])
        axes[0].set_title(population)
    image.legend(*image.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    image.savefig(path, dpi=110)


def table(rows: list[Loss], figure: str) -> list[str]:
    """Return a Markdown table of the points of a figure."""
    lines = [
        f"| population | {ABSCISSAS[figure]} | mechanism | estimator | TV | by (12), (17) | MSE | realizations |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        expected = "" if math.isnan(row.expected) or row.estimator != "emp" else f"{row.expected:.4g}"
        point = f"| {row.population} | {row.x:g} | {row.mechanism} | {row.estimator} |"
        lines.append(f"{point} {row.variation:.4g} | {expected} | {row.squared:.3g} | {row.realizations} |")
    return lines
