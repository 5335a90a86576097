"""The collection spec: what a collection asks for, of whom and how, in one YAML file per version.

Validation is strict: an unknown key, a value of a wrong type or a contradiction raises an error that names file, key,
value and remedy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.specs.any_mechanism import AnyMechanism
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.candidates import Discover
from uldp.schemas.specs.device_half import device_half, digest
from uldp.schemas.specs.domains import AttributeName, Domain, Tag
from uldp.schemas.specs.durations import Moment, format_duration, format_moment
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.kinds import RECORD, Ends
from uldp.schemas.specs.kinds.number import as_record
from uldp.schemas.specs.mechanism_family import MisfitError, names_where
from uldp.schemas.specs.mistakes import explain, near, notes, quote
from uldp.schemas.specs.slices import By, Slices, attributes_of, check_by
from uldp.schemas.specs.specfile import SpecError, SpecFolder, read_spec
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Sensitive
from uldp.schemas.specs.variable import Variable, read_variable
from uldp.schemas.specs.window import AnyTime, Limits, WindowSpec

#: A collection and one of its versions.
CollectionKey = tuple[str, int]
#: What the name of a collection is, all of it.
COLLECTION = "[a-z0-9-]{1,64}"
#: A version is smaller.
MAX_VERSION = 1 << 31

#: Default of ``limits.max_age``, the largest age of a report. A report with an event time in seconds seems older than
#: this, so the decoder rejects it.
MAX_AGE = timedelta(days=365)
#: The default is no more time slices than this, because a sender can open a window for each slice of that time.
MAX_TIME_SLICES = 10_000

#: Advice for the keys that take a word or a list.
_UNIONS = {
    "sensitive": "write all, or a list of values of the domain",
    "estimator": f"write one of {', '.join(get_args(EstimatorName))}, or a list of them",
}


class CollectionSpec(Strict):
    """One version of one collection. Build it with ``load`` from a file, or with ``parse`` from a mapping."""

    collection: str = Field(pattern=f"^{COLLECTION}$", description="1 to 64 of the characters a-z, 0-9 and -")
    version: int = Field(ge=1, lt=MAX_VERSION)
    domain: Domain
    sensitive: Sensitive = "all"
    mechanism: AnyMechanism
    tags: list[Tag] = Field(default_factory=list)
    #: The values of each public attribute, whose combinations have tables of their own.
    by: By | None = Field(default=None, min_length=1)
    #: The strings whose shares are asked for, of a domain of strings.
    candidates: list[str] | None = None
    candidates_file: str | None = None
    #: The ranges whose shares are asked for, of numbers or of ordered values.
    ranges: list[Ends] = Field(default_factory=list)
    #: How many further strings are looked for.
    discover: Discover | None = None
    #: The pairs of attributes of which the second is asked for, given the first.
    given: list[Annotated[list[AttributeName], Field(min_length=2, max_length=2)]] = Field(default_factory=list)
    window: WindowSpec
    #: What a device sends of the time of its observation: the beginning of its time slice, or the millisecond.
    event_time: Literal["slice", "exact"] = "slice"
    #: What a job remembers of a report's id: a keyed hash of 64 bits, or all 128 bits.
    dedup: Literal["hashed", "exact"] = "hashed"
    #: What a user may spend over all collections before devices refuse to report to this one.
    budget: Budget | None = None
    estimator: EstimatorName | Annotated[list[EstimatorName], Field(min_length=1)] = "auto"
    #: Whether each interval of a table alone covers the truth with the level of the table, or all of them together.
    intervals: Literal["each", "simultaneous"] = "each"
    #: The share of forged reports for which wider intervals are published beside the others.
    assume_forgers: float | None = Field(default=None, gt=0, lt=1)
    limits: Limits = Limits()
    retired: bool = False
    #: From when on a job counts reports, by their publish time. Until then it knows no such version.
    opens: Moment | None = None
    #: From when on a job rejects reports, by their publish time, as those of a version that is retired.
    closes: Moment | None = None

    _variables: dict[str, Variable] = PrivateAttr()
    _device_digest: str | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, keys: Any) -> Any:
        return as_record(keys)

    @model_validator(mode="after")
    def _consistent(self) -> "CollectionSpec":
        lasting = self.window.size + self.window.allowed_lateness
        if self.limits.max_age is not None and self.limits.max_age < lasting:
            raise ValueError(
                f"limits.max_age must be {format_duration(lasting)} or more, which is window.size +"
                " window.allowed_lateness, because a window counts reports of this age"
            )
        self._check_budget()
        self._check_cap()
        if self.opens is not None and self.closes is not None and self.closes <= self.opens:
            raise ValueError(
                f"closes must be later than opens, {format_moment(self.opens)}, got {format_moment(self.closes)}"
            )
        if self.by is not None:
            check_by(self.by, list(self.domain.record or ()))
        if len(set(self.estimators)) != len(self.estimators):
            raise ValueError(f"estimators must differ, got {self.estimators}")
        return self

    def _check_budget(self) -> None:
        if self.budget is None:
            return
        if self.mechanism.no_budget:
            raise ValueError(f"budget: {self.mechanism.no_budget}; remove budget")
        spent, key, reports = self.mechanism.epsilon, "epsilon", "a report spends"
        if self.mechanism.lasting_epsilon is not None:
            spent, key, reports = self.mechanism.lasting_epsilon, "lasting_epsilon", "two of a value spend"
        if spent is not None and self.budget.epsilon < spent:
            raise ValueError(
                f"budget.epsilon must be {spent:.16g} or more, which is mechanism.{key}: {reports} this much"
            )

    def _check_cap(self) -> None:
        most, periods = self.limits.max_reports_per_sender, self.window.size // self.window.slice
        if self.limits.cap_senders and most is not None and most < periods:
            raise ValueError(
                f"limits.max_reports_per_sender must be {periods:,} or more with cap_senders: a window has {periods:,}"
                " periods, and each counts an equal part of the limit"
            )

    def __init__(self, *given: object, **keys: object) -> None:
        """Refuse, by a TypeError, what skips the files that a spec names, and the checks of them."""
        raise TypeError(
            "read a spec with CollectionSpec.load(PATH), or check a mapping with CollectionSpec.parse(KEYS)"
        )

    # As of BaseModel's own: validation calls no such __init__.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def load(cls, path: str | Path, *, below: Path | None = None) -> "CollectionSpec":
        """Read a spec file and the files that it names, relative to it, and below its folder or another one.

        SpecError if the spec or one of these files is invalid.
        """
        if not isinstance(path, str | PathLike):
            raise TypeError(f"the path of a spec is a {type(path).__name__}, not a str; parse takes a mapping")
        path = Path(path)
        return cls.parse(read_spec(path), base=path.parent, below=below, source=str(path))

    @classmethod
    def parse(
        cls, data: object, *, base: Path = Path(), below: Path | None = None, source: str = "spec"
    ) -> "CollectionSpec":
        """Check ``data`` and read the files that it names, relative to ``base`` and ``below`` it or another folder.

        SpecError has one line per problem, each beginning with ``source``. TypeError if ``data`` is a path, or the text
        of a file.
        """
        if isinstance(data, PathLike) or (isinstance(data, str) and source == "spec"):
            raise TypeError(f"{quote(data)} is no mapping of keys; read a file with CollectionSpec.load(PATH)")
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
            spec._variables = spec._read_variables(SpecFolder(base, below))
            spec._check_estimators()
            spec._check_intervals()
            spec._check_early_panes()
        except ValueError as error:
            raise SpecError(f"{source}: {error}") from error
        return spec

    def _read_variables(self, folder: SpecFolder) -> dict[str, Variable]:
        record, mechanism = self.domain.record, self.mechanism
        if mechanism.share is not None:
            raise ValueError("mechanism.share: only the attributes of a record have shares; remove it")
        if record is None:
            mechanism.check_given((), self.given)
            if mechanism.domain_kind == RECORD:
                raise ValueError(
                    f"mechanism: {mechanism.name} is for a record; give domain.record, or another mechanism"
                )
            return {"": read_variable(self.domain, self, mechanism, folder, simultaneous=self._simultaneous)}
        if mechanism.domain_kind != RECORD:
            raise ValueError(
                f"mechanism: a record needs {names_where(lambda family: family.domain_kind == RECORD)}, not"
                f" {mechanism.name}; give each attribute a mechanism in of"
            )
        beside = [
            name for name in ("tags", "candidates", "candidates_file", "ranges", "discover") if getattr(self, name)
        ]
        if self.sensitive != "all" or beside:
            key = beside[0] if beside else "sensitive"
            raise ValueError(f"{key}: the attributes of a record have their own; move {key} to domain.record")
        parts = mechanism.of_attributes(record)
        if others := [name for name in parts if name not in record]:
            suggestion = notes(near(others[0], record))
            raise ValueError(f"mechanism.of.{others[0]}: not an attribute of domain.record; remove it{suggestion}")
        if missing := [name for name in record if name not in parts]:
            raise ValueError(f"mechanism.of.{missing[0]}: missing; add the mechanism of this attribute")
        mechanism.check_given(record, self.given)
        return {
            name: read_variable(
                attribute,
                attribute,
                parts[name],
                folder,
                attribute=name,
                share=mechanism.share_of(name),
                simultaneous=self._simultaneous,
            )
            for name, attribute in record.items()
        }

    def with_intervals(self, intervals: Literal["each", "simultaneous"]) -> Self:
        """Return this spec with other intervals; those of numbers stay as they are."""
        spec = self.model_copy(update={"intervals": intervals})
        return spec.with_variables(
            {name: replace(variable, simultaneous=spec._simultaneous) for name, variable in self.variables.items()}
        )

    def with_variables(self, variables: Mapping[str, Variable]) -> Self:
        """Return this spec with variables that differ in what devices do not know."""
        spec = self.model_copy()
        spec._variables = dict(variables)
        return spec

    @property
    def _simultaneous(self) -> bool:
        return self.intervals == "simultaneous"

    def _check_intervals(self) -> None:
        if self._simultaneous and all(variable.kind.ordered for variable in self.variables.values()):
            raise ValueError("intervals: simultaneous is for shares of values, and no domain has values; remove it")

    def _check_early_panes(self) -> None:
        families = [each.mechanism for each in self.variables.values()]
        if self.window.early_every is not None and all(family.discovers for family in families):
            raise ValueError(
                f"window.early_every: {families[0].name} looks for strings for seconds, so early panes have no"
                " estimates; remove it, or take shorter windows"
            )

    def _check_estimators(self) -> None:
        names = ", ".join(dict.fromkeys(variable.mechanism.name for variable in self.variables.values()))
        known = {name for variable in self.variables.values() for name in variable.estimators}
        for estimator in sorted(set(self.estimators) - known):
            if estimator in {"mle", "em"} and "wls" in known:
                raise ValueError(
                    f"estimator {estimator} needs each report of {names}, but a job keeps only counts; use wls"
                )
            fitting = ", ".join(name for name in get_args(EstimatorName) if name in known)
            raise ValueError(f"estimator {estimator} does not fit {names}; choose from {fitting}")
        for variable in self.variables.values() if self.estimators[0] == "norm-sub" else ():
            if precise := variable.mechanism.uneven_noise(variable.sensitive_mask):
                raise ValueError(
                    f"estimator norm-sub cannot be the first of {variable.mechanism.name}: it shifts values that"
                    f" {precise} as far as the noisy ones, out of their own intervals; write wls first, and norm-sub"
                    " behind it to compare"
                )
        for (name, variable), estimator in product(self.variables.items(), self.estimators):
            try:
                variable.mechanism.check_estimator(estimator)
            except MisfitError as error:
                raise ValueError(f"mechanism.{f'of.{name}.' if name else ''}{error}") from error

    @property
    def key(self) -> CollectionKey:
        """The collection and version, which each report names."""
        return self.collection, self.version

    def lasting(self, opens: datetime | None, closes: datetime | None) -> Self:
        """Return this spec with another time in which reports count."""
        return self.model_copy(update={"opens": opens, "closes": closes})

    @property
    def estimators(self) -> list[EstimatorName]:
        """The estimators to publish for each window."""
        return self.estimator if isinstance(self.estimator, list) else [self.estimator]

    @property
    def max_age(self) -> timedelta:
        """Largest age of a report: ``limits.max_age``, or a default.

        The default is a year or, if shorter, ``MAX_TIME_SLICES`` time slices; but not less than the time a window
        counts. A slice is the period of sliding windows, or the size of others.
        """
        if self.limits.max_age is not None:
            return self.limits.max_age
        window = self.window
        # A year is no more slices than that if a slice is longer; a product of all sizes would overflow.
        slices = MAX_TIME_SLICES * min(window.slice, MAX_AGE)
        return max(min(MAX_AGE, slices), window.size + window.allowed_lateness)

    def sent_time(self, time: AnyTime) -> AnyTime:
        """Return the event time that a device sends of an observation; both are milliseconds since 1970-01-01 UTC."""
        if self.event_time == "exact":
            return time
        return self.window.slice_start(time)

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The attributes of the record by name, in its order; "" is the name of the only variable without a record."""
        # Not self._variables: pydantic's __getattr__ takes ten times as long, and each line of an estimate asks.
        known: Mapping[str, Variable] = (self.__pydantic_private__ or {})["_variables"]
        return known

    @property
    def slices(self) -> Slices | None:
        """The slices that the public attributes of reports make; None without public attributes."""
        return None if self.by is None else Slices(self.by)

    @property
    def whole(self) -> Self:
        """This spec without public attributes, that of a slice, or of the sum of all; with the digest of this one."""
        if self.by is None:
            return self
        digest_of_all = self.device_digest
        whole = self.model_copy(update={"by": None})
        whole._device_digest = digest_of_all
        return whole

    def variable(self, of: Sequence[str]) -> Variable | None:
        """Return the variable that a table is about: that of an attribute, or the only one, of all users or of a group.

        None if the table is about several attributes, or about one that the record has not.
        """
        if not of:  # this is asked for each line that shows an estimate
            return self.variables.get("")
        about = attributes_of(of)
        if len(about) > 1:
            return None
        name = "".join(about)
        return self.variables.get("" if name in self.mechanism.user_groups else name)

    @property
    def device_half(self) -> dict[str, Any]:
        """The facts that devices need, by key of the spec; see ``uldp.schemas.specs.device_half``."""
        return device_half(self.mechanism, self.variables, self.by)

    @property
    def device_digest(self) -> str:
        """A digest of the device half. Statistics may be added if theirs are equal."""
        if self._device_digest is None:
            self._device_digest = digest(self.device_half)  # takes long if there are many labels
        return self._device_digest

    @property
    def _only(self) -> Variable:
        if self.domain.record is not None:
            raise ValueError(f"{self.collection} collects a record; name one of its variables")
        return self.variables[""]

    @property
    def size(self) -> int:
        """|X|, the number of values in the domain of the only variable; 0 for a number."""
        return self._only.size

    @property
    def labels(self) -> list[str]:
        """A name for each value of the only variable."""
        return self._only.labels

    @property
    def sensitive_mask(self) -> Mask:
        """Shape (|X|,): whether each value of the only variable is in X_S."""
        return self._only.sensitive_mask

    @property
    def background(self) -> Floats:
        """Shape (kappa, |X|): see ``Variable.background``, of the only variable."""
        return self._only.background

    def index(self, value: int | str) -> int:
        """Return the position of a value of the only variable; see ``Values.index``."""
        return self._only.index(value)


def checked_spec(spec: object) -> CollectionSpec:
    """Return a spec; TypeError if it is anything else, as the path of one."""
    if isinstance(spec, CollectionSpec):
        return spec
    remedy = "give a CollectionSpec"
    if isinstance(spec, str | PathLike):
        remedy = "read the file with CollectionSpec.load(PATH)"
    elif isinstance(spec, Mapping):
        remedy = "check the mapping with CollectionSpec.parse(KEYS)"
    raise TypeError(f"a spec is a {type(spec).__name__}, not a CollectionSpec; {remedy}")
