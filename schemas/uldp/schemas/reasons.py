"""The closed set of reasons for rejecting a report."""

from enum import StrEnum


class Reason(StrEnum):
    """The reason why a report could not be counted. Names are stable, because jobs write them to disk."""

    NOT_AVRO = "not_avro"
    REGISTRY_FRAMING = "registry_framing"
    UNKNOWN_SCHEMA = "unknown_schema"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    UNKNOWN_COLLECTION = "unknown_collection"
    UNKNOWN_VERSION = "unknown_version"
    RETIRED_VERSION = "retired_version"
    WRONG_PAYLOAD = "wrong_payload"
    WRONG_LENGTH = "wrong_length"
    OUT_OF_DOMAIN = "out_of_domain"
    IMPOSSIBLE_PAYLOAD = "impossible_payload"
    INVALID_TIME = "invalid_time"
    TOO_EARLY = "too_early"
    EXPIRED = "expired"
    TOO_MANY_WINDOWS = "too_many_windows"
    OVER_SENDER_LIMIT = "over_sender_limit"


#: For each reason, one line that explains to a reader when it occurs.
MEANING: dict[Reason, str] = {
    Reason.NOT_AVRO: "the message does not begin with a header of Avro's single-object encoding",
    Reason.REGISTRY_FRAMING: "the message begins with 00 and the id of a schema registry, not with Avro's header",
    Reason.UNKNOWN_SCHEMA: "the writer's schema fingerprint is not in the schema store",
    Reason.TRUNCATED: "the message ends inside its body",
    Reason.MALFORMED: "the body is not what Avro writes for a value of its schema, or batch columns differ in length",
    Reason.TOO_LARGE: "the message is longer than the limit; it is not decoded",
    Reason.UNKNOWN_COLLECTION: "no spec has this collection",
    Reason.UNKNOWN_VERSION: "the collection is known, this version of it is not",
    Reason.RETIRED_VERSION: "the spec of this version says that it is retired",
    Reason.WRONG_PAYLOAD: "a symbol where the mechanism reports bytes, or bytes where it reports a symbol",
    Reason.WRONG_LENGTH: "the payload has another number of bytes than those of the mechanism",
    Reason.OUT_OF_DOMAIN: "the symbol is none of those that the mechanism reports",
    Reason.IMPOSSIBLE_PAYLOAD: "no honest device sends this payload, for example padding that is not 0",
    Reason.INVALID_TIME: "the event time, or the publish time of the message, is outside of the years 1970 to 8999",
    Reason.TOO_EARLY: "the event time is later than the stream's clock by more than the allowed skew",
    Reason.EXPIRED: "the event time is further before the stream's clock than the allowed age",
    Reason.TOO_MANY_WINDOWS: "the message has reports of too many windows, and this report is not of the newest",
    Reason.OVER_SENDER_LIMIT: "the window counts limits.max_reports_per_sender reports of this sender already",
}

#: For each reason, one line that says to the developer of a client what to do. docs/rejected.md has more for operators.
REMEDY: dict[Reason, str] = {
    Reason.NOT_AVRO: "send the header of 10 bytes before the body, and no JSON, text or container file",
    Reason.REGISTRY_FRAMING: "write the header of 10 bytes in place of 00 and the id, or name the id by --registry-ids",
    Reason.UNKNOWN_SCHEMA: "write the fingerprint in little-endian, and use report.avsc as this version ships it",
    Reason.TRUNCATED: "send the whole message; a buffer or a limit of length has cut it, or a length in it is wrong",
    Reason.MALFORMED: "write each field as Avro does, nothing behind the last one, and columns of one length",
    Reason.TOO_LARGE: "put fewer reports into a batch",
    Reason.UNKNOWN_COLLECTION: "send the collection of a spec, or give the collector this spec too",
    Reason.UNKNOWN_VERSION: "send the version of a spec, or give the collector this version too",
    Reason.RETIRED_VERSION: "update the client to a version that is not retired",
    Reason.WRONG_PAYLOAD: "use one spec at both ends; the mechanism decides whether a payload is a symbol or bytes",
    Reason.WRONG_LENGTH: "use one spec at both ends; count the tags, which are part of Z",
    Reason.OUT_OF_DOMAIN: "use one spec at both ends; symbols count from 0, the domain first and then the tags",
    Reason.IMPOSSIBLE_PAYLOAD: "follow the recipe of the mechanism; set padding to 0",
    Reason.INVALID_TIME: "send milliseconds since 1970-01-01 UTC",
    Reason.TOO_EARLY: "correct the device's clock; send milliseconds since 1970-01-01 UTC",
    Reason.EXPIRED: "send milliseconds since 1970-01-01 UTC, and no report that is older than limits.max_age",
    Reason.TOO_MANY_WINDOWS: "put reports of fewer windows into a batch",
    Reason.OVER_SENDER_LIMIT: "send no more reports of a window; a gateway of many devices needs a larger limit",
}
