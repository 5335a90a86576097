"""The collection spec: the domain, mechanism, windows and limits of a collection, in one YAML file per version.

Validation is strict: an unknown key, a value of a wrong type or a contradiction raises an error that names file, key,
value and remedy.
"""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from uldp.schemas.durations import Duration, format_duration
from uldp.schemas.mistakes import explain, near, notes, plain, quote
from uldp.schemas.specfile import SpecError, read_rows, read_spec, read_weight

BIT_MECHANISMS = frozenset({"rappor", "sue", "oue", "urap", "uoue"})
UTILITY_OPTIMIZED = frozenset({"mangat", "urr", "urap", "uoue"})
THETA_MECHANISMS = frozenset({"rappor", "urap"})

MechanismName = Literal["identity", "rr", "warner", "mangat", "urr", "rappor", "sue", "oue", "urap", "uoue"]
EstimatorName = Literal["empirical", "threshold", "norm-sub", "mle", "em"]
#: A collection and one of its versions.
CollectionKey = tuple[str, int]

#: Default of ``limits.max_age``, the largest age of a report. A report with an event time in seconds seems older than
#: this, so the decoder rejects it.
MAX_AGE = timedelta(days=365)
#: The default is no more time slices than this, because a sender can open a window for each slice of that time.
MAX_SLICES = 10_000
#: The longest window. Reports may be of any time before the year 9000, and text of times has years of four digits.
MAX_WINDOW = timedelta(days=365_000)

#: Advice for the keys that take a word or a list.
_UNIONS = {
    "sensitive": "write all, or a list of values of the domain",
    "estimator": f"write one of {', '.join(get_args(EstimatorName))}, or a list of them",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Domain(_Strict):
    """The values that a device may hold: ``size`` values, or one value for each of ``labels``."""

    size: int | None = Field(default=None, ge=2, le=1 << 24)
    labels: list[str] | None = Field(default=None, min_length=2)
    labels_file: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "Domain":
        given = [name for name in ("size", "labels", "labels_file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of size, labels, labels_file (given: {', '.join(given) or 'none'})")
        _refuse_repeated(self.labels or ())
        return self


def _refuse_repeated(labels: Iterable[str]) -> None:
    seen = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"label {quote(label)} occurs twice; labels must differ")
        seen.add(label)


class MechanismSpec(_Strict):
    """The mechanism by which devices perturb values. ``epsilon`` is the privacy budget of one report, in nats."""

    name: MechanismName
    epsilon: float | None = Field(default=None, gt=0, le=50)
    theta: float | None = Field(default=None, gt=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers_are_floats(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: float(value) if key != "name" and type(value) is int else value for key, value in data.items()}
        return data

    @model_validator(mode="after")
    def _parameters_fit(self) -> "MechanismSpec":
        if self.name == "identity" and self.epsilon is not None:
            raise ValueError("identity gives no privacy and takes no epsilon; remove epsilon or choose a mechanism")
        if self.name != "identity" and self.epsilon is None:
            raise ValueError(f"{self.name} needs epsilon, for example epsilon: 1.0")
        if self.name == "rappor" and self.theta is None:
            raise ValueError("rappor needs theta, for example theta: 0.5 (sue and oue set theta themselves)")
        if self.theta is not None and self.name not in THETA_MECHANISMS:
            raise ValueError(f"{self.name} takes no theta; only {', '.join(sorted(THETA_MECHANISMS))} do")
        return self

    @property
    def reports_bits(self) -> bool:
        """Whether a report holds one bit per symbol; otherwise it holds one symbol."""
        return self.name in BIT_MECHANISMS


class Tag(_Strict):
    """A semantic tag of PUM, behind which users hide values, and background knowledge about the hidden values."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="1 to 64 of the characters A-Z, a-z, 0-9, _ and -")
    background: str | None = None


class WindowSpec(_Strict):
    """Event-time windows: fixed, or sliding by ``period``."""

    size: Duration
    period: Duration | None = None
    early_every: Duration | None = None
    allowed_lateness: Duration = timedelta(0)

    @model_validator(mode="after")
    def _fits(self) -> "WindowSpec":
        if not self.size:
            raise ValueError("size must be more than 0")
        if self.size > MAX_WINDOW:
            raise ValueError(f"size must be {format_duration(MAX_WINDOW)} or less")
        if self.early_every is not None and (not self.early_every or self.early_every.microseconds):
            raise ValueError("early_every must be one or more whole seconds; leave it out for no early panes")
        if self.period is not None and (not self.period or self.size % self.period):
            raise ValueError(f"size must be a multiple of period; {format_duration(self.period)} does not divide it")
        return self


class Limits(_Strict):
    """Limits at which the job withholds or flags an estimate, or rejects a report."""

    min_reports: int = Field(default=1, ge=1)
    max_rejected_ratio: float | None = Field(default=None, gt=0, le=1)
    #: The reaction to a window above ``max_rejected_ratio``: flag its estimate, or publish no estimate.
    when_exceeded: Literal["flag", "stop"] = "flag"
    #: No default, because each transport has its own share of copies: devices and brokers send again.
    max_duplicate_ratio: float | None = Field(default=None, gt=0, le=1)
    max_reports_per_sender: int | None = Field(default=None, ge=1)
    max_clock_skew: Duration = timedelta(minutes=10)
    max_age: Duration | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Limits":
        if self.when_exceeded == "stop" and self.max_rejected_ratio is None:
            raise ValueError("when_exceeded: stop needs max_rejected_ratio, the share of rejected reports to stop at")
        return self


class CollectionSpec(_Strict):
    """One version of one collection. Build it with ``load`` from a file, or with ``parse`` from a mapping."""

    collection: str = Field(pattern=r"^[a-z0-9-]{1,64}$", description="1 to 64 of the characters a-z, 0-9 and -")
    version: int = Field(ge=1, lt=1 << 31)
    domain: Domain
    sensitive: Literal["all"] | list[int | str] = "all"
    mechanism: MechanismSpec
    tags: list[Tag] = []
    window: WindowSpec
    estimator: EstimatorName | Annotated[list[EstimatorName], Field(min_length=1)] = "empirical"
    limits: Limits = Limits()
    retired: bool = False

    _labels: list[str] | None = PrivateAttr(default=None)
    _index: dict[str, int] = PrivateAttr(default_factory=dict)
    _sensitive_mask: npt.NDArray[np.bool_] = PrivateAttr()
    _background: npt.NDArray[np.float64] = PrivateAttr()

    @model_validator(mode="after")
    def _consistent(self) -> "CollectionSpec":
        name = self.mechanism.name
        if name == "mangat" and self.sensitive == "all":
            raise ValueError("mangat needs exactly one sensitive value, for example sensitive: [1]")
        if name not in UTILITY_OPTIMIZED and self.sensitive != "all":
            raise ValueError(
                f"{name} protects every value alike; write sensitive: all, or choose one of urr, urap, uoue"
            )
        if self.tags and name not in UTILITY_OPTIMIZED - {"mangat"}:
            raise ValueError(f"tags need one of urr, urap, uoue as the common mechanism, not {name}")
        names = [tag.name for tag in self.tags]
        if len(set(names)) != len(names):
            raise ValueError(f"tag names must differ, got {names}")
        lasting = self.window.size + self.window.allowed_lateness
        if self.limits.max_age is not None and self.limits.max_age < lasting:
            raise ValueError(
                f"limits.max_age must be {format_duration(lasting)} or more, which is window.size +"
                " window.allowed_lateness, because a window counts reports of this age"
            )
        if len(set(self.estimators)) != len(self.estimators):
            raise ValueError(f"estimators must differ, got {self.estimators}")
        if self.mechanism.reports_bits and (wrong := {"mle", "em"} & set(self.estimators)):
            raise ValueError(
                f"estimator {min(wrong)} needs each report of {name}, but a job keeps only counts; use norm-sub"
            )
        return self

    @classmethod
    def load(cls, path: str | Path) -> "CollectionSpec":
        """Read a spec file and the files that it names, whose paths are relative to the spec file.

        Raises:
            SpecError: if the spec or one of these files is invalid.
        """
        path = Path(path)
        return cls.parse(read_spec(path), base=path.parent, source=str(path))

    @classmethod
    def parse(cls, data: object, *, base: Path = Path(), source: str = "spec") -> "CollectionSpec":
        """Check ``data`` and read the files that it names, relative to ``base``.

        Raises:
            SpecError: one line per problem, each beginning with ``source``.
        """
        if not isinstance(data, dict):
            given = "nothing" if data is None else "a list" if isinstance(data, list) else quote(data)
            raise SpecError(
                f"{source}: a spec must be a mapping with the key collection (got {given}); is this a spec?"
            )
        try:
            spec = cls.model_validate(data)
        except ValidationError as error:
            raise SpecError("\n".join(explain(source, error, cls, _UNIONS))) from error
        try:
            spec._resolve(base)
        except ValueError as error:
            raise SpecError(f"{source}: {error}") from error
        return spec

    def _resolve(self, base: Path) -> None:
        """Fill the private arrays from labels, sensitive values and background files."""
        if self.domain.labels_file is not None:
            self._labels = _read_labels(base / self.domain.labels_file)
        else:
            self._labels = self.domain.labels
        self._index = {label: index for index, label in enumerate(self._labels or ())}
        self._sensitive_mask = self._mask()
        if self.mechanism.name in {"warner", "mangat"} and self.size != 2:
            raise ValueError(f"domain: {self.mechanism.name} is for two values, got {self.size}; use rr or urr")
        if self.mechanism.name == "mangat" and self._sensitive_mask.sum() != 1:
            raise ValueError("sensitive: mangat needs exactly one sensitive value; name one")
        self._background = np.full((len(self.tags), self.size), np.nan)
        for index, tag in enumerate(self.tags):
            if tag.background is not None:
                try:
                    self._background[index] = self._read_background(base / tag.background)
                except ValueError as error:
                    raise ValueError(
                        f"tags.{index}.background: {plain(str(base / tag.background))}: {error}"
                    ) from error
            elif self._sensitive_mask.all():
                raise ValueError(
                    f"tags.{index}: {tag.name} needs a background, because no value is non-sensitive; add background"
                )

    def _mask(self) -> npt.NDArray[np.bool_]:
        if self.sensitive == "all":
            return np.ones(self.size, dtype=np.bool_)
        mask = np.zeros(self.size, dtype=np.bool_)
        for value in self.sensitive:
            try:
                index = self.index(value)
            except ValueError as error:
                raise ValueError(f"sensitive: {error}") from error
            if isinstance(value, int) and self._index.get(str(value), index) != index:
                raise ValueError(
                    f"sensitive: {value} is the index of one value and the label of another; for the label, write "
                    f"it in quotes: '{value}'"
                )
            if mask[index]:
                raise ValueError(f"sensitive: {quote(value)} occurs twice; remove one")
            mask[index] = True
        if not mask.any():
            raise ValueError(
                "sensitive: the list is empty; name the sensitive values, or choose the mechanism identity"
            )
        return mask

    def _read_background(self, path: Path) -> npt.NDArray[np.float64]:
        weights = np.zeros(self.size)
        for line, row in read_rows(path):
            if line == 1 and row == ["value", "weight"]:
                continue
            try:
                if len(row) != 2:
                    raise ValueError(f"the row has {len(row)} fields; write value,weight")
                weights[self.read_value(row[0])] += read_weight(row[1])
            except ValueError as error:
                raise ValueError(f"line {line}: {quote(','.join(row))}: {error}") from error
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not 0 < total < np.inf:
            raise ValueError(f"the weights sum to {total:g}; give at least one value a weight above 0")
        distribution: npt.NDArray[np.float64] = weights / total
        return distribution

    def index(self, value: int | str) -> int:
        """Return the position of a value (an index or a label) in the domain.

        Raises:
            ValueError: if the value is not in the domain.
        """
        if isinstance(value, str):
            if self._labels is None:
                raise ValueError(f"{quote(value)} is a label, but the domain has only a size")
            if value not in self._index:
                raise ValueError(f"{quote(value)} is not a label of the domain{notes(near(value, self._labels))}")
            return self._index[value]
        if not 0 <= value < self.size:
            raise ValueError(f"{quote(value)} is outside of the domain 0 to {self.size - 1}")
        return value

    def read_value(self, text: str) -> int:
        """Return the position of a value in a table, by its label if the domain has labels, otherwise by its index.

        Raises:
            ValueError: if the value is not in the domain.
        """
        # Python cannot read a number of thousands of digits, and no index has a hundred digits.
        is_index = self._labels is None and text.isdecimal() and len(text) < 100
        return self.index(int(text) if is_index else text)

    @property
    def key(self) -> CollectionKey:
        """The collection and version, which each report names."""
        return self.collection, self.version

    @property
    def size(self) -> int:
        """|X|, the number of values in the domain."""
        if self.domain.size is not None:
            return self.domain.size
        return len(self._labels or ())

    @property
    def labels(self) -> list[str]:
        """A name for each value of the domain."""
        return self._labels or [str(value) for value in range(self.size)]

    @property
    def estimators(self) -> list[EstimatorName]:
        """The estimators to publish for each window."""
        return self.estimator if isinstance(self.estimator, list) else [self.estimator]

    @property
    def max_age(self) -> timedelta:
        """Largest age of a report: ``limits.max_age``, or a default.

        The default is a year or, if shorter, ``MAX_SLICES`` time slices; but not less than the time a window counts.
        A slice is the period of sliding windows, or the size of others.
        """
        if self.limits.max_age is not None:
            return self.limits.max_age
        window = self.window
        # A year is no more slices than that if a slice is longer; a product of all sizes would overflow.
        slices = MAX_SLICES * min(window.period or window.size, MAX_AGE)
        return max(min(MAX_AGE, slices), window.size + window.allowed_lateness)

    @property
    def sensitive_mask(self) -> npt.NDArray[np.bool_]:
        """Shape (|X|,): whether each value is in X_S."""
        return self._sensitive_mask

    @property
    def background(self) -> npt.NDArray[np.float64]:
        """Shape (kappa, |X|): the distribution pi-hat_k of each tag; a row of NaN without background knowledge."""
        return self._background


def _read_labels(path: Path) -> list[str]:
    """Read the first column of a table."""
    try:
        labels = [row[0] for _, row in read_rows(path)]
        _refuse_repeated(labels)
        if len(labels) < 2:
            raise ValueError(f"the file has {len(labels)} labels; write two or more")
    except ValueError as error:
        raise ValueError(f"domain.labels_file: {plain(str(path))}: {error}") from error
    return labels
