"""The report: a results directory as one self-contained HTML page, for readers who must judge the estimates."""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.results.files import Damaged, ResultsError, refuse
from uldp.pipelines.results.read import current, read_rejected
from uldp.pipelines.results.specs import read_specs, with_specs
from uldp.pipelines.results.text import accounting_text, decimals, largest, number_of, percent, window_text
from uldp.schemas import flags
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.durations import format_duration
from uldp.schemas.mechanisms import RapporSpec, UrapSpec
from uldp.schemas.mistakes import printable
from uldp.schemas.reasons import MEANING
from uldp.schemas.records import Estimate, count_reasons

#: How many of the largest values the page lists.
TOP = 20

_MECHANISMS = {
    "identity": "identity, no obfuscation",
    "rr": "randomized response (RR)",
    "warner": "Warner’s randomized response",
    "mangat": "Mangat’s randomized response",
    "urr": "utility-optimized randomized response (uRR)",
    "rappor": "generalized RAPPOR",
    "sue": "symmetric unary encoding (SUE)",
    "oue": "optimized unary encoding (OUE)",
    "urap": "utility-optimized RAPPOR (uRAP)",
    "uoue": "utility-optimized OUE (uOUE)",
    "olh": "optimized local hashing (OLH)",
    "duchi": "Duchi et al.’s mechanism for a mean",
    "block": "the piecewise and square wave mechanism",
    "sample-one": "a mechanism for each attribute of the record",
}


class ReportError(ValueError):
    """The report cannot be made from the given arguments. The message names the remedy."""


@dataclass(frozen=True)
class Row:
    """One of the largest values: its share, the ends of its 95 % interval, and the true share if it is known."""

    label: str
    sensitive: bool
    share: float
    low: float
    high: float
    truth: float | None


@dataclass(frozen=True)
class Scale:
    """A linear scale of shares for the bars, with ``low`` at 0 % and ``high`` at 100 % of the width."""

    low: float
    high: float
    ticks: Sequence[float]

    @classmethod
    def covering(cls, shares: Sequence[float]) -> Self:
        """Return the scale that holds zero and all ``shares``, with two to seven ticks at round values."""
        low, high = min(0.0, *shares), max(0.0, *shares)
        step = 10.0 ** math.floor(math.log10(high - low))
        step *= next(part for part in (0.2, 0.5, 1, 2) if (high - low) / (step * part) <= 6)
        return cls(low, high, [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)])

    def __call__(self, share: float) -> str:
        """Return the position of a share in percent of the width."""
        return f"{100 * (share - self.low) / (self.high - self.low):.2f}"


@dataclass(frozen=True)
class Score:
    """The l1 error of an estimate, and the share of its 95 % intervals that hold the truth."""

    l1: float
    covered: float


@dataclass(frozen=True)
class Picture:
    """An image as a data URI, with its alternative text and its caption."""

    uri: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Section:
    """One estimate as the page shows it."""

    anchor: str
    estimate: Estimate
    window: str
    accounting: str
    expected_l1: float
    score: Score | None
    places: int
    rows: Sequence[Row]
    scale: Scale
    scatter: Picture | None
    heat_map: Picture | None


@dataclass(frozen=True)
class Chapter:
    """One version of one collection: its spec, its privacy guarantee, and its estimates."""

    spec: CollectionSpec
    mechanism: str
    guarantee: str
    truth: bool
    sections: Sequence[Section]


def write_report(
    out: Path,
    target: Path,
    *,
    truth: Mapping[tuple[str, int], Floats] | None = None,
    grid: tuple[int, int] | None = None,
    damaged: Damaged = refuse,
) -> None:
    """Write the newest pane of every window in ``out`` as one HTML page. The same input gives the same bytes.

    Args:
        out: A results directory.
        target: The file to write.
        truth: By (collection, version), the true distribution over X, shape (|X|,), if a simulation knows it.
        grid: Rows and columns, for collections with |X| values that are the cells of a map: value i is in row
            i // columns, with row 0 at the bottom.
        damaged: Called for each damaged file. The page shows the number of these files, and all other windows.

    Raises:
        ResultsError: if ``out`` is not a results directory. Errors that ``damaged`` raises pass through.
        SpecError: if a spec in ``out`` is invalid.
        ReportError: if jinja2 or matplotlib is missing, a truth is not a distribution over its X, or no collection has
            rows x columns values.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401 (report a missing package before the results are read)
    except ImportError as error:
        raise ReportError(f"a report needs {error.name}; install it: pip install 'uldp-stream[report]'") from error
    specs = read_specs(out)
    unread = 0

    def leave_out(error: ResultsError) -> None:
        nonlocal unread
        damaged(error)
        unread += 1

    estimates, unpublished = current(out, specs, damaged=leave_out)
    by_spec: dict[tuple[str, int], list[Estimate]] = {}
    for estimate, spec in with_specs(estimates, specs, leave_out):
        by_spec.setdefault(spec.key, []).append(estimate)
    if grid is not None and by_spec and math.prod(grid) not in {specs[key].size for key in by_spec}:
        sizes = ", ".join(f"{specs[key].size} ({specs[key].collection})" for key in by_spec)
        raise ReportError(
            f"a grid of {grid[0]} x {grid[1]} has {math.prod(grid)} cells, but |X| is {sizes}; correct the grid"
        )
    chapters = [_chapter(specs[key], estimates, (truth or {}).get(key), grid) for key, estimates in by_spec.items()]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("uldp.pipelines.report"),
        autoescape=True,  # labels, flags and file names are data
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rejected = _rejections(out, leave_out)
    environment.filters["duration"] = format_duration
    environment.filters["window"] = window_text
    environment.filters["percent"] = lambda share, places: percent(share, places).replace("-", "−")
    page = environment.get_template("report.html.j2").render(
        name=out.resolve().name,
        chapters=chapters,
        unpublished=unpublished,
        flag_meanings=flags.MEANING,
        rejected=rejected,
        unread=number_of(unread, "file") if unread else "",
    )
    target.write_text(page, encoding="utf-8")


def _shown(value: object) -> object:
    """Replace the characters of a text that reorder or hide what a reader sees; HTML needs no escape for them."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _chapter(
    spec: CollectionSpec, estimates: Sequence[Estimate], truth: Floats | None, grid: tuple[int, int] | None
) -> Chapter:
    if truth is not None and not (truth.shape == (spec.size,) and (truth >= 0).all() and abs(truth.sum() - 1) < 1e-6):
        raise ReportError(
            f"the truth of {spec.collection} must be {spec.size} shares of 0 or more that sum to 1, "
            f"got shape {truth.shape} and sum {truth.sum():g}"
        )
    theta = spec.mechanism.theta if isinstance(spec.mechanism, RapporSpec | UrapSpec) else None
    return Chapter(
        spec,
        mechanism=_MECHANISMS[spec.mechanism.name] + ("" if theta is None else f", θ = {theta:g}"),
        guarantee=guarantee(spec),
        truth=truth is not None,
        sections=[_section(estimate, spec, truth, grid) for estimate in estimates],
    )


def guarantee(spec: CollectionSpec) -> str:
    """Return one sentence about the privacy that one report guarantees to its user.

    Source: Murakami & Kawamoto (USENIX Security 2019), Definitions 1 and 2, and Proposition 11 for tags.
    """
    epsilon = spec.mechanism.epsilon
    if epsilon is None:
        return "Nobody is protected: every report is the true value."
    odds = math.exp(epsilon)
    factor = f"exp(ε) = {odds:,.0f}" if 100 <= odds < 1e6 else f"exp(ε) = {odds:.3g}"
    if spec.sensitive_mask.all():
        return (
            f"Whatever value a user holds, what the device sends is at most {factor} times as likely as it would be "
            "under any other value, for everyone who sees it, the collector included (ε-LDP)."
        )
    hidden, also = "", ""
    if spec.tags:
        hidden = ", or is one that the device hides behind a tag and tells nobody about,"
        also = ", and with it that the user does not hide this value"
    return (
        f"A user whose value is sensitive{hidden} sends only protected reports, each at most {factor} times as likely "
        "as it would be under any other value, for everyone who sees it, the collector included (ULDP); "
        f"a user at any other value may send a report that reveals it{also}."
    )


def _section(estimate: Estimate, spec: CollectionSpec, truth: Floats | None, grid: tuple[int, int] | None) -> Section:
    support = estimate.support
    # The interval comes from the counts and not from the standard errors, because these are 0 where the count is 0.
    share, *_ = build_protocol(spec).decoder.tables(support.counts, support.n, estimate.estimator)
    assert share.low is not None
    assert share.high is not None
    interval = share.low, share.high
    order = largest(estimate.distribution, TOP)
    low, high = interval
    sensitive = spec.sensitive_mask & (not spec.sensitive_mask.all())
    rows = [
        Row(
            spec.labels[i],
            bool(sensitive[i]),
            float(estimate.distribution[i]),
            float(low[i]),
            float(high[i]),
            None if truth is None else float(truth[i]),
        )
        for i in order
    ]
    score = None if truth is None else _score(estimate, interval, truth)
    return Section(
        anchor=f"{support.collection}-v{support.version}-{support.window_start}-{support.window_end}-{estimate.estimator}",
        estimate=estimate,
        window=window_text(support),
        accounting=accounting_text(support.accounting),
        # E|e| = sqrt(2/pi) sd for a normal error e, summed over the values.
        expected_l1=math.sqrt(2 / math.pi) * float(estimate.stderr.sum()),
        score=score,
        places=decimals(estimate.stderr[order]),
        rows=rows,
        scale=Scale.covering([share for row in rows for share in (row.low, row.high, row.share, row.truth or 0.0)]),
        scatter=_scatter(estimate.distribution, interval, sensitive, truth),
        heat_map=_heat_map(estimate.distribution, truth, grid),
    )


def _score(estimate: Estimate, interval: tuple[Floats, Floats], truth: Floats) -> Score:
    low, high = interval
    # The end of an interval may differ from a share of 0 by a rounding error.
    covered = (low - 1e-12 <= truth) & (truth <= high + 1e-12)
    return Score(float(np.abs(estimate.distribution - truth).sum()), float(covered.mean()))


def _scatter(
    distribution: Floats, interval: tuple[Floats, Floats], sensitive: Mask, truth: Floats | None
) -> Picture | None:
    if len(distribution) <= TOP:
        return None  # the table beside it shows every value
    from uldp.pipelines.report import figures

    against = "their rank" if truth is None else "their true shares"
    return Picture(
        _uri(figures.scatter(distribution, interval, sensitive, truth)),
        f"Scatter plot of the estimated shares of {len(distribution):,} values against {against}, with 95 % intervals.",
        f"All {len(distribution):,} values with 95 % intervals, against {against}. "
        "Axes of shares are logarithmic, but linear around zero.",
    )


def _heat_map(distribution: Floats, truth: Floats | None, grid: tuple[int, int] | None) -> Picture | None:
    if grid is None or math.prod(grid) != len(distribution):
        return None
    from uldp.pipelines.report import figures

    shown = "Estimate" if truth is None else "Truth and estimate"
    text = f"as a {grid[0]} x {grid[1]} grid, row-major, row 0 at the bottom"
    return Picture(
        _uri(figures.heat_maps(distribution, truth, grid)),
        f"{shown} drawn {text}; darker cells hold more users.",
        f"{shown} {text}. Estimates below zero are drawn as 0.",
    )


def _uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _rejections(out: Path, damaged: Damaged) -> list[tuple[str, int, str]]:
    """Return reason, count and meaning of the rejections, the most frequent first."""
    counts = count_reasons(read_rejected(out, damaged))
    meaning: Mapping[str, str] = {reason.value: text for reason, text in MEANING.items()}
    return [(reason, n, meaning.get(reason, "")) for reason, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))]
