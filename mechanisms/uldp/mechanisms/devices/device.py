"""The code on a user's device: the pre-processor f_pre, the common mechanism, and the encoding of the report.

Source: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 5 for the Personalized ULDP Mechanism (PUM), section 7 for several reports per user.
"""

import json
import math
import operator
import secrets
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.ledger import Ledger, LedgerContent
from uldp.mechanisms.devices.randomness import KeptDraws, SystemRandomness
from uldp.mechanisms.devices.spending import BudgetExceededError, admitted_at, record, spent_by
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.mechanism import Randomness, WithMemory
from uldp.schemas.arrays import Payloads, Values
from uldp.schemas.records import Report, as_milliseconds
from uldp.schemas.specs.collection import CollectionSpec, checked_spec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.kinds import ListedValues, Value
from uldp.schemas.specs.variable import Variable

#: What the program of a device gives about its user: a value, a set of items or of strings, or a ranking.
Holding = Value | set[int] | frozenset[int] | list[int] | set[str] | frozenset[str] | list[str]
#: The index of the tag of each hidden value; these values are indices.
_TagOf = Mapping[Value, int]
#: By value, the name of its tag; or such a mapping for each attribute of a record.
Hidden = Mapping[int, str] | Mapping[str, Mapping[int, str]]


class Device:
    """Perturbs one user's values: Q^(i) = Q_cmn after f_pre^(i) (section 5.1).

    Guarantee to the user against every reader of the report, including the collector: one report is
    (X_S and X_S^(i), Y_P, epsilon)-ULDP (Proposition 11). X_S are the spec's sensitive values, X_S^(i) are the values
    in ``hidden``, and Y_P are the reports that some sensitive value can produce. For every report in Y_P, its
    likelihoods under any two true values differ by at most a factor e^epsilon, and a value of X_S or X_S^(i) produces
    no report outside Y_P. With ``sensitive: all`` this is epsilon-LDP. The mechanism identity guarantees nothing.

    The guarantee requires unpredictable randomness, and requires that ``hidden`` never leaves the device.

    Without ``lasting_epsilon`` in the spec, every call spends epsilon: t reports spend t * epsilon together
    (Proposition 1, section 7). To send a report again, keep its bytes and send them. With a ledger, the device enters
    what it spends, over all collections that share the ledger. If the spec has a ``budget``, the device refuses a
    report with which more than this budget would be spent in the period before it.

    If the spec has ``lasting_epsilon``, the device keeps its response to each symbol in a ledger. One report of a value
    then spends epsilon. All its reports together spend at most ``lasting_epsilon`` (see ``Memoized``), and two of them
    may spend as much, which is more than 2 * epsilon. Values behind one tag share a response. Numbers
    share one if they are rounded to one point of the grid of their mechanism: the device keeps the draw by which it
    rounds, and that of the attribute of a record that it reports. So one value has one symbol for ever. The device
    reports once a window, because two of its reports would not be independent. It draws and writes the same, whether or
    not it has reported the value before. For a budget, the first report of a response spends epsilon, the second the
    rest of ``lasting_epsilon``, and later ones spend nothing.

    No report tells two values behind one tag apart, unless the tag has zones. Then the likelihoods of a report differ
    by up to a factor e^zone_epsilon, or e^epsilon without ``zone_epsilon``.

    The device does not protect:

    - a value that is neither in X_S nor in X_S^(i): a report outside Y_P reveals it, and so that it is not hidden;
    - the fact that a report is sent, its time and place of sending, and the time slice of its event;
    - with ``lasting_epsilon``, the fact that a value has changed, also if the budget refuses the new one, and from
      readers of the ledger the values themselves;
    - conclusions from correlation, between a user's values (a visit next door to home) or between users.
    """

    def __init__(
        self,
        spec: CollectionSpec,
        hidden: Hidden,
        randomness: Randomness | None = None,
        ledger: Ledger | None = None,
        level: str | None = None,
    ) -> None:
        """Set up the device of one user.

        Args:
            hidden: f_pre^(i) (eq. 20): the index of each value that this user hides, and the name of its tag. For a
                record, such a mapping for each attribute in which the user hides values. This object keeps it private.
            randomness: The source of randomness; the default is the operating system's.
            ledger: Where the device keeps its responses if the spec has ``lasting_epsilon``, and what its reports have
                spent. All devices of one user share it.
            level: The level of privacy that the user has chosen, if the mechanism is ``levels``. Reports name it, so it
                must not depend on what the device holds.

        Raises:
            ValueError: if ``hidden`` has a value outside the domain or a tag that is not in the spec. The message names
                neither the value nor the tag. Or if the spec has ``lasting_epsilon`` or ``budget``, and there is no
                ledger; or if it has levels, and ``level`` is none of them.
            TypeError: if ``spec`` is no spec, ``hidden`` no mapping of indices, or ``randomness`` no generator.
        """
        self._spec = checked_spec(spec)
        if not isinstance(hidden, Mapping):
            raise TypeError(f"hidden is a {type(hidden).__name__}, not a mapping of values to tags; {{}} hides none")
        if isinstance(randomness, int):
            raise TypeError("randomness is a seed; numpy.random.default_rng(seed) makes a generator, for examples only")
        of_attributes = cast(Mapping[str, Mapping[int, str]], {"": hidden} if "" in spec.variables else hidden)
        if not spec.variables.keys() >= of_attributes.keys():
            raise ValueError(f"hidden names an attribute that is not in the spec, which has {list(spec.variables)}")
        self._hidden = {name: _hidden(name, each, of_attributes.get(name, {})) for name, each in spec.variables.items()}
        self._protocol = build_protocol(spec).at(level)
        self._randomness = SystemRandomness() if randomness is None else randomness
        asked = "lasting_epsilon" if self._protocol.mechanism.memory else "budget" if spec.budget else None
        if asked is not None and ledger is None:
            raise ValueError(f"{spec.collection} has {asked}, so its devices need a ledger, such as FileLedger")
        self._ledger = ledger
        # A digest of the spec takes long if there are many labels.
        self._digest = spec.device_digest if self._protocol.mechanism.memory else ""

    def __repr__(self) -> str:
        return f"Device(collection={self._spec.collection!r}, version={self._spec.version})"

    def report(
        self, value: Holding | Mapping[str, Holding], event_time_ms: int, by: Mapping[str, str] | None = None
    ) -> bytes:
        """Perturb a value and encode its report, which spends a budget.

        Args:
            value: The true value: an index into the domain, a string, or a number, which becomes the nearest end of
                the range if it is outside. Of a set, the indices of its items, or its strings, as a set, list or
                tuple; of a ranking, those of all candidates, the best first. For a record, the value of each attribute.
            event_time_ms: The time of the observation, in milliseconds since 1970-01-01 UTC. The report holds the
                beginning of its time slice (the period of sliding windows, or the size of others), or with
                ``event_time: exact`` in the spec this time itself.
            by: The value of each public attribute, if the spec has ``by``. The report names them openly, so they must
                not depend on what the device holds.

        Returns:
            The message to send: a framed ``uldp.schemas.records.Report`` with a fresh random id.

        Raises:
            ValueError: if a value is outside of its domain, is no finite number, too long a string or no ranking of all
                candidates, an attribute is missing, or ``by`` is not as the spec has it. The message contains no value
                of the domain. With ``lasting_epsilon``, also if the device has reported in this window or a later one.
            BudgetExceededError: if the report would exceed the budget. The message contains no value.
            ClockError: if the ledger does not believe the time. The message contains no value.
            TypeError: if an index is no integer, a number is no number, a string is no string, a record is no mapping,
                or the time is no integer. The message contains no value.
        """
        values = cast(Mapping[str, Holding], {"": value} if "" in self._spec.variables else value)
        event_time_ms = as_milliseconds(event_time_ms, "event_time_ms")
        if not isinstance(values, Mapping):
            raise TypeError(f"the value is a {type(value).__name__}, not a mapping with {list(self._spec.variables)}")
        if values.keys() != self._spec.variables.keys():
            raise ValueError(f"a record needs a value for each of {list(self._spec.variables)}")
        columns = [_held(name, each, values[name], self._hidden[name]) for name, each in self._spec.variables.items()]
        if by is not None and self._spec.slices is None:
            raise ValueError("by: the spec has no public attributes")
        if self._spec.slices is not None:
            columns += [Held(np.array([at]), np.array([-1])) for at in self._spec.slices.positions(by)]
        payload = self._perturb(columns, event_time_ms)[0]
        return Report(
            *self._spec.key,
            report_id=secrets.token_bytes(16),
            event_time=self._spec.sent_time(event_time_ms),
            payload=payload.tobytes() if isinstance(payload, np.ndarray) else int(payload),
        ).encode()

    def _perturb(self, columns: Sequence[Held], event_time_ms: int) -> Payloads:
        protocol, ledger = self._protocol, self._ledger
        mechanism = protocol.mechanism
        # The ledger is written before the report is drawn, so that no report leaves that it does not know.
        if (keeping := mechanism.kept) is not None and ledger is not None:
            with ledger.change() as content:
                latest = ledger.check_time(content, event_time_ms)
                self._check_window(content, event_time_ms, latest)
                symbols = self._encode(content, columns)
                response = self._permanent(content, keeping, symbols, event_time_ms)
            return keeping.again(response, self._randomness)
        symbols = protocol.encoding.encode(columns, self._randomness)
        if ledger is not None:
            with ledger.change() as content:
                ledger.check_time(content, event_time_ms)
                self._spend(content, self._protocol.guarantee.epsilon, event_time_ms)
        return mechanism.perturb(symbols, self._randomness)

    def _encode(self, content: LedgerContent, columns: Sequence[Held]) -> Values:
        """Encode what this device holds, always by the same draws, which it keeps."""
        key = self._key(content, "encoding")
        draws = KeptDraws(np.frombuffer(content.kept.get(key, b""), np.int64), self._randomness)
        symbols = self._protocol.encoding.encode(columns, draws)
        if draws.made:
            content.kept[key] = np.concatenate([each.ravel() for each in draws.made]).tobytes()
        return symbols

    def _check_window(self, content: LedgerContent, event_time_ms: int, latest: int | None) -> None:
        """Refuse a second report in a window. A window that a clock far ahead has reported to silences no device."""
        until = int.from_bytes(content.kept.get(self._key(content, "reported until"), b""))
        if event_time_ms < until and (latest is None or until <= latest + milliseconds(self._spec.window.size)):
            raise ValueError(f"this device has reported to {self._spec.collection} in this window, or in a later one")

    def _permanent(
        self, content: LedgerContent, mechanism: WithMemory, symbols: Values, event_time_ms: int
    ) -> Payloads:
        """Return the permanent response to the symbol; keep it behind a byte, which counts its reports up to 2."""
        key = self._key(content, mechanism.kept_under(symbols)[0].tolist())
        # Draw and write in any case, so that the time does not depend on whether the device has had this value before.
        response = mechanism.permanent(symbols, self._randomness)
        kept = content.kept.get(key, b"\0")
        reports = kept[0]
        self._spend(content, spent_by(self._protocol.guarantee, reports), event_time_ms)
        if reports:
            response[:] = np.frombuffer(kept, response.dtype, offset=1).reshape(response.shape)
            response = mechanism.renamed(response, symbols)
        content.kept[key] = bytes([min(reports + 1, 2)]) + response.tobytes()
        # The end of the last window that holds the time: it begins with the slice of this time.
        until = self._spec.window.slice_start(event_time_ms) + milliseconds(self._spec.window.size)
        content.kept[self._key(content, "reported until")] = until.to_bytes(8)
        return response

    def _spend(self, content: LedgerContent, epsilon: float | None, event_time_ms: int) -> None:
        """Enter what a report spends, or refuse it; without privacy, it spends more than any budget has."""
        epsilon = math.inf if epsilon is None else epsilon
        if self._spec.budget is not None:
            until = admitted_at(content.spent, epsilon, event_time_ms, self._spec.budget)
            if until > event_time_ms:
                raise BudgetExceededError(self._spec, until)
        content.spent = record(content.spent, epsilon, event_time_ms)

    def _key(self, content: LedgerContent, entry: int | str | list[int]) -> str:
        """Return the key of an entry in the ledger. Versions with one device half share entries, and so the budget."""
        return content.key(json.dumps([self._spec.collection, self._digest, entry]))


def _hidden(name: str, variable: Variable, hidden: Mapping[int, str]) -> _TagOf:
    tags = {tag.name: index for index, tag in enumerate(variable.tags)}
    if not hidden:
        return {}
    if not variable.kind.listed:
        raise ValueError("hidden names values, but the domain has none: it is of numbers or of strings")
    listed = variable.of_kind(ListedValues)
    if not all(0 <= listed.index(value, name, "a hidden value") < listed.values.size for value in hidden):
        raise ValueError(f"a hidden value is outside of the domain 0 to {variable.size - 1}")
    if not tags.keys() >= set(hidden.values()):
        raise ValueError(f"a hidden value has a tag that is not in the spec, whose tags are {list(tags)}")
    return {operator.index(value): tags[tag] for value, tag in hidden.items()}


def _held(name: str, variable: Variable, value: object, hidden: _TagOf) -> Held:
    """Check a value, and return it as a column of one device."""
    held = variable.kind.check(value, name)
    return Held(variable.kind.column([held]), np.array([hidden.get(held, -1)]))
