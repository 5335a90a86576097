"""What an operator asks: for these values, which mechanism, and how large an epsilon, or how many users."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uldp.mechanisms.inference.forecast import falling_shares
from uldp.mechanisms.protocol.decoder import SEED
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.budget import protects
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.domains import VariableDomain
from uldp.schemas.specs.kinds import Kind
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.specfile import SpecFolder, read_spec

#: The keys of a mechanism that a question has apart.
_BUDGETS = {"name", "epsilon", "lasting_epsilon"}
#: The shares of a truth of sets are those of so many users.
_USERS = 1 << 16


@dataclass(frozen=True)
class Question:
    """A domain and a truth, and two of epsilon, users and error; the third is asked for."""

    keys: Mapping[str, Any]  # the keys of the spec, without its mechanism
    base: Path  # the folder of the files that the spec names
    truth: Path | None  # a truth file, or None for shares in the ratio of 1, 1/2, 1/3, ... in a random order.
    epsilon: float | None  # the budget of one report in nats
    users: int | None  # the number of users who report in a window
    #: The l1 distance of the published shares from the truth to expect; of strings, the least share that is found.
    error: float | None
    #: The budget of two or more reports of one value, if devices keep responses; it changes nothing for one report.
    lasting_epsilon: float | None = None
    below: Path | None = None  # the folder below which these files may be; None for ``base``
    #: Further keys of the mechanism of the spec, such as ``sizes``: a mechanism that takes one has it.
    own: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [self.epsilon, self.users, self.error]
        if given.count(None) != 1:
            raise RequestError("give two of --epsilon, --users and --error; the third is what uldp advise finds")
        if self.error is not None and not self.error > 0:  # as NaN is, which passes a range of click
            raise RequestError(f"--error {self.error:g} is no distance; give one above 0, up to 2")
        if self.epsilon is not None:
            try:
                protects(self.epsilon)
            except ValueError as error:
                raise RequestError(f"--epsilon {error} (got {self.epsilon:g})") from error

    @cached_property
    def kind(self) -> Kind:
        """What a device holds."""
        return VariableDomain.model_validate(self.keys["domain"]).read(SpecFolder(self.base, self.below))

    @property
    def size(self) -> int:
        """The number of values."""
        return self.kind.values.size

    def spec(self, mechanism: Mapping[str, Any], *, plain: bool) -> CollectionSpec:
        """Return the spec with a mechanism, ``plain`` if it protects all values; ValueError if it suits them not."""
        return CollectionSpec.parse(self.spec_keys(mechanism, plain=plain), base=self.base, below=self.below)

    def spec_keys(self, mechanism: Mapping[str, Any], *, plain: bool) -> dict[str, Any]:
        """Return what ``spec`` parses, which can be written as YAML."""
        keys = {**self.keys, "mechanism": dict(mechanism), "estimator": "auto"}
        return {**keys, "sensitive": "all"} if plain and self.kind.listed else keys

    def true_shares(self, spec: CollectionSpec, protocol: LdpProtocol) -> Floats:
        """Return true symbols' distribution r over Z; of sets, the share of users, or of reporters, who hold each."""
        values = self.size + len(spec.variables[""].tags)
        falling = protocol.decoder.without_sizes.symbol_shares(falling_shares(values))
        if self.truth is None:
            return falling
        truth, rng, most = Truth.load(self.truth, spec), np.random.default_rng(SEED), len(falling)
        if not self.kind.alone:  # a user holds one value
            return truth.intermediate()
        symbols = protocol.encoding.encode(truth.sample(_USERS, rng), rng)
        of_items = symbols[symbols[:, 0] < most]
        return np.bincount(of_items.ravel(), minlength=most) / len(of_items)


def keys_of_size(size: int, sensitive: int | None) -> dict[str, Any]:
    """Return the keys of a spec of so many values, of which the first are sensitive, or all; ValueError if too few."""
    if sensitive is not None and sensitive > size:
        raise RequestError(f"--sensitive {sensitive} is more than the {size} values; give {size} or less")
    protected: str | list[int] = "all" if sensitive in {None, size} else list(range(sensitive or 0))
    keys = {"collection": "advised", "version": 1, "domain": {"size": size}, "sensitive": protected}
    return keys | {"window": {"size": "1d"}}


def keys_of_spec(path: Path, below: Path | None = None) -> tuple[dict[str, Any], float | None, dict[str, Any]]:
    """Return the keys of a spec without mechanism and estimators, its ``lasting_epsilon``, and ``own``.

    ``own`` are no keys of values, whose mechanisms' parameters differ in meaning. ValueError if the spec is invalid, or
    has zones.
    """
    spec = CollectionSpec.load(path, below=below)
    for tag in spec.variables[""].tags:
        if tag.zones is not None:
            raise RequestError(
                f"{path}: uldp advise does not simulate zones, and the tag {quote(tag.name)} has some; compare the"
                " mechanisms without zones, add them, and let uldp check say what they tell"
            )
    keys = read_spec(path)
    assert isinstance(keys, dict)  # the spec is valid
    others = {key: value for key, value in keys.items() if key not in {"mechanism", "estimator"}}
    own = {} if spec.variables[""].kind.listed else {**keys["mechanism"]}
    return others, spec.mechanism.lasting_epsilon, {key: own[key] for key in own.keys() - _BUDGETS}
