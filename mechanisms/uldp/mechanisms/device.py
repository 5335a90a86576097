"""What runs on a user's device: the pre-processor f_pre, the common mechanism, and the report that leaves.

Source: Murakami & Kawamoto, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"
(USENIX Security 2019), section 5 for the Personalized ULDP Mechanism (PUM), section 7 for several reports per user.
"""

import operator
import secrets
from collections.abc import Mapping

import numpy as np

from uldp.mechanisms.catalog import build_mechanism
from uldp.mechanisms.mechanism import Randomness
from uldp.mechanisms.randomness import SystemRandomness
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.records import Report


class Device:
    """Obfuscates one user's values: Q^(i) = Q_cmn after f_pre^(i) (section 5.1).

    What is guaranteed, to the user against anyone who reads the report, the collector included: one report is
    (X_S and X_S^(i), Y_P, epsilon)-ULDP (Proposition 11). X_S are the spec's sensitive values and X_S^(i) are those
    in ``hidden``; Y_P are the reports that some sensitive value can produce. Whatever the report in Y_P, no two true
    values differ in its likelihood by more than a factor e^epsilon, and a value of X_S or X_S^(i) produces no report
    outside of Y_P. With ``sensitive: all`` this is epsilon-LDP. Under the mechanism identity, nothing is guaranteed.

    It rests on randomness that nobody can predict, and on ``hidden`` never leaving the device.

    Every call spends epsilon: t reports have t * epsilon together (Proposition 1, section 7), also if they report one
    value t times, for there is no memoized response. To send a report again, keep its bytes and send those.

    What is not protected:

    - a value that is neither in X_S nor in X_S^(i): a report outside of Y_P reveals it, and so that it is not hidden;
    - that, when and from where a report is sent, and its event time;
    - what follows from correlation, between a user's values (a visit next door to home) or between users.
    """

    def __init__(self, spec: CollectionSpec, hidden: Mapping[int, str], randomness: Randomness | None = None) -> None:
        """Set up the device of one user.

        Args:
            spec: The collection that the reports are for.
            hidden: f_pre^(i) (eq. 20): the index of each value that this user hides, and the name of its tag. It stays
                private to this object.
            randomness: Where to draw from; by default the operating system's.

        Raises:
            ValueError: if ``hidden`` has a value outside of the domain or a tag that is not in the spec. The message
                says neither value nor tag.
        """
        bots = {tag.name: spec.size + index for index, tag in enumerate(spec.tags)}
        if not all(0 <= operator.index(value) < spec.size for value in hidden):
            raise ValueError(f"a hidden value is outside of the domain 0 to {spec.size - 1}")
        if not bots.keys() >= set(hidden.values()):
            raise ValueError(f"a hidden value has a tag that is not in the spec, whose tags are {list(bots)}")
        self._spec = spec
        self._hidden = {operator.index(value): bots[tag] for value, tag in hidden.items()}
        self._mechanism = build_mechanism(spec)
        self._randomness = SystemRandomness() if randomness is None else randomness

    def __repr__(self) -> str:
        return f"Device(collection={self._spec.collection!r}, version={self._spec.version})"

    def report(self, value: int, event_time_ms: int) -> bytes:
        """Obfuscate a value and encode the report of it. Spends epsilon.

        Args:
            value: The true value, an index into the domain.
            event_time_ms: When it was observed, in milliseconds since 1970-01-01 UTC. It is sent as it is.

        Returns:
            The message to send: a framed ``uldp.schemas.records.Report`` with a fresh random id.

        Raises:
            ValueError: if the value is outside of the domain. The message does not say the value.
        """
        value = operator.index(value)
        if not 0 <= value < self._spec.size:
            raise ValueError(f"the value is outside of the domain 0 to {self._spec.size - 1}")
        symbol = self._hidden.get(value, value)
        payload = self._mechanism.perturb(np.array([symbol]), self._randomness)[0]
        return Report(
            *self._spec.key,
            report_id=secrets.token_bytes(16),
            event_time=event_time_ms,
            payload=payload.tobytes() if self._mechanism.payload_shape else int(payload),
        ).encode()
