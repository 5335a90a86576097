"""Whether the reports of a client follow the mechanism of a spec, from an archive of reports of one value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from uldp.mechanisms.inference.goodness_of_fit import Check, checks
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.pipelines.clients.inspection import Inspection
from uldp.pipelines.clients.sent import archived_messages, in_chunks
from uldp.pipelines.results.text import number_of
from uldp.schemas.arrays import Payloads, ReportIds
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.variable import Variable

#: A right client fails in about this share of all runs.
LEVEL = 1e-5
#: Fewer reports show only gross errors.
MIN_REPORTS = 1_000
#: More reports are not read, so that the command ends soon; so many find deviations of a thousandth.
MAX_REPORTS, MAX_BYTES = 1_000_000, 1 << 28


@dataclass(frozen=True)
class Verification:
    """The tests of a client.

    Attributes:
        reports: The number of reports.
        checks: The tests.
    """

    reports: int
    checks: Sequence[Check]

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
    archive: str,
    values: Sequence[str],
    tags: Sequence[str],
    level: str | None = None,
    registry_ids: Mapping[int, str] | None = None,
) -> Verification:
    """Test the reports in an archive.

    Args:
        spec: The spec of the reports.
        archive: A file or directory of messages.
        values: The value that the devices hold: one text, or ``ATTRIBUTE=VALUE`` for each attribute of a record.
        tags: The tag that hides it: nothing or one text, or ``ATTRIBUTE=TAG`` for attributes of a record.
        level: The level of privacy of the devices, if the spec has levels.
        registry_ids: As in ``Inspection``.

    Raises:
        ValueError: if the archive cannot show anything; says what to do.
    """
    inspection = Inspection([spec], registry_ids)
    protocol = inspection.protocol(spec).at(level)
    if protocol.mechanism.memory:
        raise RequestError(
            f"{spec.collection} has lasting_epsilon, and reports of one permanent response depend on each other; copy"
            " the spec without this key, let a device with an empty ledger make each report, and verify with the copy"
        )
    lawless = [variable.kind.holds for variable in spec.variables.values() if not variable.kind.has_law]
    if lawless and "" not in spec.variables:
        raise RequestError(
            f"{spec.collection} collects records with {lawless[0]}, whose reports verify does not test; verify"
            f" those of a collection of the {lawless[0]} alone"
        )
    held = _held(spec, values, tags)
    ids, payloads = _read(inspection, archive)
    n = len(ids)
    if inspection.rejected:
        rejected = number_of(inspection.rejected, "report")
        raise RequestError(f"{archive}: a collector rejects {rejected}; uldp decode says why")
    if n < MIN_REPORTS:
        raise RequestError(
            f"{archive}: holds {number_of(n, 'report')}, which show little; let the client report this value"
            f" {MIN_REPORTS:,} times or more"
        )
    if repeated := n - len(np.unique(ids, axis=0)):
        raise RequestError(
            f"{archive}: {number_of(repeated, 'report')} of {n:,} repeat the report_id of another; give each report"
            " 16 fresh random bytes"
        )
    mechanism = protocol.mechanism.bare
    if isinstance(mechanism, StringMechanism):
        (symbol,) = protocol.encoding.encode(held, np.random.default_rng(0)).tolist()  # it draws nothing
        return Verification(n, list(mechanism.string_checks(symbol, payloads)))
    r = protocol.encoding.law(held, protocol.mechanism.size)
    return Verification(n, list(checks(protocol.mechanism, r, payloads)))


def _read(inspection: Inspection, archive: str) -> tuple[ReportIds, Payloads]:
    """Return the ids and the payloads of the first reports, about as many as the limits allow."""
    ids, payloads, size = [], [], 0
    for chunk in in_chunks(archived_messages(archive)):
        for judged in inspection.read(chunk):
            ids.append(judged.parsed.report_ids)
            payloads.append(judged.parsed.payloads)
            size += payloads[-1].nbytes
        if inspection.reports >= MAX_REPORTS or size >= MAX_BYTES:
            break
    if inspection.rejected or not ids:
        return np.zeros((0, 2), np.uint64), np.zeros(0, np.uint32)
    return np.concatenate(ids), cast(Payloads, np.concatenate(payloads))


def _held(spec: CollectionSpec, values: Sequence[str], tags: Sequence[str]) -> list[Held]:
    """Return what each device holds, as columns of one row."""
    by_name, hidden = _by_name(spec, values, "--value"), _by_name(spec, tags, "--tag")
    if not by_name:
        raise RequestError("no value is given; add --value")
    if missing := [name for name in spec.variables if name not in by_name]:
        raise RequestError(f"{spec.collection} collects {quote(missing[0])}; add --value {missing[0]}=VALUE")
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
        yield Held(np.array([value]), np.array([tag]))


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
