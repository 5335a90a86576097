"""The privacy guarantee of a spec in sentences, for the readers of the page."""

import math

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.mechanism import Privacy
from uldp.schemas.specs.collection import CollectionSpec


def guarantee(spec: CollectionSpec) -> str:
    """Return sentences about the privacy of one report, and of all reports of a user.

    Source: Murakami & Kawamoto (USENIX Security 2019), Definitions 1 and 2, and Proposition 11 for tags.
    """
    promise = build_protocol(spec).mechanism.guarantee
    if promise.epsilon is None:
        return "Nobody is protected: every report is the true value."
    one = _guarantee_of_one_report(spec, promise.privacy, f"exp(ε) = {_factor(promise.epsilon)}") + _within_tags(spec)
    if promise.terms:
        one += f" This is the most that any two values differ by: {promise.terms}."
    if promise.public:
        one += f" {promise.public[0].upper()}{promise.public[1:]}."
    if promise.lasting is not None:
        one += " This is about one report; for two or more reports of one value together, the factor is "
        one += f"{_factor(promise.lasting)}. Values of one user add up."
    if spec.budget is not None:
        one += (
            f" A device refuses reports with which its user would spend more than {spec.budget}, over all collections."
        )
    if promise.lasting is None and spec.budget is None:
        one += " Reports of one user add up: t reports spend t·ε."
    return one


def _factor(epsilon: float) -> str:
    odds = math.exp(epsilon)
    return f"{odds:,.0f}" if 100 <= odds < 1e6 else f"{odds:.3g}"


#: What the definitions are called that bound the odds of every two values.
_DEFINITIONS = {
    Privacy.LDP: "ε-LDP",
    Privacy.ID_LDP: "input-discriminative LDP, MinID-LDP",
    Privacy.METRIC: "d-privacy, which does not protect far values from each other",
}


def _guarantee_of_one_report(spec: CollectionSpec, privacy: Privacy, factor: str) -> str:
    if privacy is not Privacy.ULDP:
        return (
            f"Whatever value a user holds, what the device sends is at most {factor} times as likely as it would be "
            f"under any other value, for everyone who sees it, the collector included ({_DEFINITIONS[privacy]})."
        )
    hidden, also = "", ""
    if any(variable.tags for variable in spec.variables.values()):
        hidden = ", or is one that the device hides behind a tag and tells nobody about,"
        also = ", and with it that the user does not hide this value"
    return (
        f"A user whose value is sensitive{hidden} sends only protected reports, each at most {factor} times as likely "
        "as it would be under any other value, for everyone who sees it, the collector included (ULDP); "
        f"a user at any other value may send a report that reveals it{also}."
    )


def _within_tags(spec: CollectionSpec) -> str:
    """Return what a report tells about a value behind a tag; nothing if no tag has zones."""
    tags = [tag for variable in spec.variables.values() for tag in variable.tags]
    loud = [tag.name for tag in tags if tag.zones is not None and tag.zone_epsilon is None]
    quiet = [f"{_factor(tag.zone_epsilon)} for {tag.name}" for tag in tags if tag.zone_epsilon is not None]
    said = ""
    if quiet:
        said += f" Between two values behind one tag, it is at most {', '.join(quiet)}."
    if loud:
        said += f" A report may name the zone of a value behind {', '.join(loud)}: between zones, it is up to exp(ε)."
    return said
