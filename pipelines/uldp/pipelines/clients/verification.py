"""Whether a client follows the mechanism of a spec and keeps its promise, by archives of reports of one value each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from uldp.mechanisms.inference.goodness_of_fit import Check, checks
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.questions.slices import group_of
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.mechanisms.verification.kept_responses import kept_checks
from uldp.mechanisms.verification.privacy_loss import Bound, Inputs, lower_bound, promised, strings_of_parts, told
from uldp.pipelines.clients.archived import Archived, read_archive
from uldp.pipelines.clients.inspection import Inspection
from uldp.schemas.arrays import Payloads, Symbols
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.slices import EQUALS, Slices, slice_text
from uldp.schemas.specs.variable import Variable

#: A right client fails in about this share of all runs.
LEVEL = 1e-5
#: All bounds on epsilon hold with this probability.
COVERAGE = 0.95


class Given(NamedTuple):
    """An archive, and what its devices hold."""

    archive: str  # a file or directory of messages
    values: Sequence[str]  # the value that devices hold; of a record, ``ATTRIBUTE=VALUE`` for each attribute
    tags: Sequence[str] = ()  # the tag that hides it, if any; of a record, ``ATTRIBUTE=TAG`` for each that is hidden


@dataclass(frozen=True, eq=False)
class Tested:
    """The reports of one value, and the tests of them."""

    sent: Archived  # the reports
    #: The distribution of its devices' symbols; or the symbol of a string, and of strata one for each part.
    inputs: Inputs
    checks: Sequence[Check]  # the tests


class Loss(NamedTuple):
    """What reports of two values show of epsilon, beside what is promised."""

    of: str  # the reports whose epsilon it is, in words
    bound: Bound
    promised: float | None  # the promise, in nats; None without privacy

    @property
    def at_least(self) -> str:
        """The bound and its coverage in words."""
        return f"{self.bound.epsilon:.3g} ({100 * COVERAGE:.0f} %)"

    @property
    def shares(self) -> str:
        """The shares of the payloads that show it, in words."""
        one, other = (f"{100 * share:.3g} %" for share in (self.bound.likelier, self.bound.rarer))
        return f"some payloads are {one} of those of one value, and {other} of those of the other"

    @property
    def promise(self) -> str:
        """The promise in words."""
        return "nothing" if self.promised is None else f"{self.promised:.6g}"

    @property
    def broken(self) -> bool:
        """Whether epsilon is above the promise."""
        return self.promised is not None and self.bound.epsilon > self.promised


@dataclass(frozen=True)
class Verification:
    """The tests of a client."""

    tested: Sequence[Tested]  # the tests of each archive
    losses: Sequence[Loss]  # the bounds on epsilon, if there are two archives

    @property
    def checks(self) -> list[Check]:
        """The tests of all archives."""
        return [check for tested in self.tested for check in tested.checks]

    @property
    def p_value(self) -> float:
        """The p-value of all tests together, by Bonferroni's correction."""
        return min(1.0, len(self.checks) * min(check.p_value for check in self.checks))

    @property
    def failed(self) -> Check | None:
        """The test that fails most clearly, if the client fails."""
        worst = min(self.checks, key=lambda check: check.p_value)
        return worst if self.p_value < LEVEL else None


def verify(
    spec: CollectionSpec,
    given: Given,
    against: Given | None = None,
    level: str | None = None,
    registry_ids: Mapping[int, str] | None = None,
    by: Sequence[str] = (),
) -> Verification:
    """Test the reports of one value in an archive, and ``against`` another, for a lower bound on epsilon.

    ``level`` and ``by``, as ``ATTRIBUTE=VALUE``, are of the devices. ValueError, which says what to do, if the archive
    cannot show anything.
    """
    inspection = Inspection([spec], registry_ids)
    slice_number = _slice(spec, by)
    protocol = inspection.protocol(spec)
    of_slices, protocol = protocol.mechanism, protocol.of_all.at(level)
    lawless = [variable.kind.holds for variable in spec.variables.values() if not variable.kind.has_law]
    if lawless and "" not in spec.variables:
        raise RequestError(
            f"{spec.collection} collects records with {lawless[0]}, whose reports verify does not test; verify"
            f" those of a collection of the {lawless[0]} alone"
        )
    if lawless and protocol.mechanism.parts and protocol.mechanism.few_symbols:
        raise RequestError(
            f"{spec.collection} also collects the sizes of {lawless[0]}, which verify does not test; verify reports of"
            " a spec without sizes"
        )
    if protocol.mechanism.parts and not protocol.mechanism.few_symbols and against is not None:
        raise RequestError(
            "verify bounds no epsilon of prefixes of strings; leave out --against, or verify a spec of cohort-olh"
        )
    all_given = {"--": given} if against is None else {"--": given, "--against-": against}
    if against is not None:
        Path(against.archive).stat()  # so that a wrong path is found before the first archive is read
    held = [_held(spec, each, option) for option, each in all_given.items()]
    tested = []
    for each, columns in zip(all_given.values(), held, strict=True):
        sent = read_archive(inspection, each.archive, by_device=protocol.mechanism.memory)
        if spec.slices is None:
            tested.append(_tested(protocol, columns, sent))
        else:
            numbers, own = _unwrapped(of_slices, sent.payloads)
            of_slice = _tested(protocol, columns, replace(sent, payloads=own))
            tested.append(replace(of_slice, checks=[_names(spec.slices, slice_number, numbers), *of_slice.checks]))
    return Verification(tested, list(_losses(protocol, *tested)) if len(tested) == 2 else [])


def _slice(spec: CollectionSpec, by: Sequence[str]) -> int:
    """Return the number of the slice of the devices; 0 without slices."""
    if spec.slices is None:
        if by:
            raise RequestError(f"--by: {spec.collection} has no public attributes")
        return 0
    if missing := [name for name in spec.slices.values if name not in {text.partition(EQUALS)[0] for text in by}]:
        raise RequestError(f"{spec.collection} has the public attribute {missing[0]}; add --by {missing[0]}=VALUE")
    return group_of(spec.slices, ",".join(by)).numbers[0]


def _unwrapped(of_slices: Mechanism, payloads: Payloads) -> tuple[Symbols, Payloads]:
    """Return the number of the slice of each payload, shape (n,), and what the mechanism of the slices has sent."""
    named, rows, own = zip(*of_slices.split_payloads(payloads), strict=True)
    order = np.argsort(np.concatenate(rows))
    return np.repeat(named, [len(of) for of in rows])[order], np.concatenate(own)[order]


def _names(slices: Slices, expected: int, numbers: Symbols) -> Check:
    """Test whether all reports name the slice of the devices."""
    others = np.unique(numbers[numbers != expected]).tolist()
    wrong = int((numbers != expected).sum())
    names = [slice_text(slices.names[number]) for number in (*others[:1], expected)]
    text = f"{wrong:,} reports name {names[0]}, not {names[1]}" if wrong else ""
    return Check("slices", f"{wrong:,} of other slices", 0.0 if wrong else 1.0, text)


def _tested(protocol: LdpProtocol, held: Sequence[Held], sent: Archived) -> Tested:
    """Test the first report of each device, and of those with a permanent response two more pairs."""
    mechanism, first = protocol.mechanism, sent.payloads[sent.rows(1)[:, 0]]
    inputs: Inputs
    if mechanism.few_symbols:
        inputs = r = protocol.encoding.law(held, mechanism.size)
        found = list(checks(mechanism, r, first))
    elif mechanism.parts:
        of_parts = protocol.encoding.of_each_part(held)
        inputs = of_parts[:, 0].astype(np.float64)
        found = list(strings_of_parts(mechanism, of_parts, first))
    else:
        symbols = protocol.encoding.of_one(held)
        inputs = symbols.astype(np.float64) if mechanism.held > 1 else int(symbols[0])
        found = list(cast(StringMechanism, mechanism.bare).string_checks(symbols, first))
    if mechanism.kept is not None:
        one, two = sent.rows(2).T
        pairs = {"first and second reports": two, "first and last reports": sent.last}
        for name, other in pairs.items() if (two != sent.last).any() else [*pairs.items()][:1]:
            of_pair = kept_checks(mechanism.kept, inputs, sent.payloads[one], sent.payloads[other])
            found += [replace(check, name=f"{check.name}, of {name}") for check in of_pair]
    return Tested(sent, inputs, found)


def _losses(protocol: LdpProtocol, one: Tested, other: Tested) -> Iterator[Loss]:
    """Bound the epsilon of one report from below; with permanent responses, also that of all reports of a device."""
    of_one, of_other = (
        told(protocol.mechanism, one.inputs, other.inputs, tested.sent.payloads) for tested in (one, other)
    )
    coverage = 1 - (1 - COVERAGE) / (1 + protocol.mechanism.memory)  # of each bound, so that all hold together
    first, other_first = (of.codes[:, each.sent.rows(1)[:, 0]] for of, each in ((of_one, one), (of_other, other)))
    promise = promised(protocol.mechanism, one.inputs, other.inputs, protocol.guarantee)
    yield Loss("one report", lower_bound(first, other_first, coverage), promise)
    if protocol.mechanism.memory:
        times = min(one.sent.times, other.sent.times)
        all_of, all_of_other = of_one.together(one.sent.rows(times)), of_other.together(other.sent.rows(times))
        lasting = protocol.guarantee.lasting if promise else 0.0  # nothing tells two values behind one tag apart
        yield Loss(f"{times:,} reports of a device", lower_bound(all_of, all_of_other, coverage), lasting)


def _held(spec: CollectionSpec, given: Given, option: str) -> list[Held]:
    """Return what each device holds, as columns of one row; ``option`` is what options of it begin with."""
    by_name = _by_name(spec, given.values, f"{option}value")
    hidden = _by_name(spec, given.tags, f"{option}tag")
    if not by_name:
        raise RequestError(f"no value is given; add {option}value")
    if missing := [name for name in spec.variables if name not in by_name]:
        raise RequestError(f"{spec.collection} collects {quote(missing[0])}; add {option}value {missing[0]}=VALUE")
    return list(_columns(spec.variables, by_name, hidden))


def _columns(variables: Mapping[str, Variable], values: Mapping[str, str], tags: Mapping[str, str]) -> Iterator[Held]:
    for name, variable in variables.items():
        value, tag = variable.read(values[name]), -1
        if name in tags:
            names = [each.name for each in variable.tags]
            if tags[name] not in names:
                known = notes(near(tags[name], names)) or f"; choose from {', '.join(names) or 'none'}"
                raise RequestError(f"{quote(tags[name])} is not a tag of the spec{known}")
            tag = names.index(tags[name])
        yield Held(variable.kind.column([value]), np.array([tag]))


def _by_name(spec: CollectionSpec, texts: Sequence[str], option: str) -> dict[str, str]:
    if "" in spec.variables:
        if len(texts) > 1:
            raise RequestError(f"{option} is given {len(texts)} times, but {spec.collection} collects no record")
        return dict(zip([""], texts, strict=False))
    found = {}
    for text in texts:
        name, _, of = text.partition("=")
        if name not in spec.variables:
            raise RequestError(f"{option} {quote(text)}: write ATTRIBUTE=..., with one of {', '.join(spec.variables)}")
        found[name] = of
    return found
