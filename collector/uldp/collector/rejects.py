"""Records of the messages that a decoder rejects, of many messages at once."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata

import numpy as np

from uldp.schemas.arrays import Rows, Times
from uldp.schemas.codec.packed import NumberedRuns, PackedMessages
from uldp.schemas.places import numbered, runs_of
from uldp.schemas.reasons import Reason
from uldp.schemas.records import ATTEMPT, NO_ATTRIBUTES
from uldp.schemas.rejected import Rejected


def rejected_records(
    reason: Reason,
    messages: PackedMessages,
    rows: Rows,
    bodies: Sequence[bytes],
    detail: Callable[[int], str],
    of: Rows,
    *,
    reports: int,
    stage: str = "decode",
) -> Iterator[Rejected]:
    """Yield records of messages that are rejected for one reason: one for all that differ in place and data alone.

    The rows, shape (n,), ascend. Of each message, its record keeps the body; ``detail`` is asked for once a record, and
    ``of``, shape (n,), has its argument for each of them.
    """
    for attributes, of_attributes in _by_attributes(messages.attributes, rows):
        why = Rejected(stage, reason, "", (), attributes, (), "", _attempt(attributes), _software(), reports)
        for prefix, of_source, numbers in _by_source(messages.source, rows[of_attributes]):
            at = of_attributes[of_source]
            times = messages.publish_times[rows[at]]
            if len(numbers) and len(numbers) == len(np.unique(numbers)):
                order = np.argsort(numbers, kind="stable")
                yield replace(
                    why,
                    detail=detail(int(of[at[order[0]]])),
                    bodies=tuple([bodies[row] for row in at[order].tolist()]),
                    publish_times=tuple(times[order].tolist()),
                    source=f"{prefix}{numbers[order[0]]}",
                    runs=runs_of(numbers[order]) if len(at) > 1 else (),
                    reports=reports * len(at),
                )
            else:  # their source does not number them, or gives several messages one place
                for row, time in zip(at.tolist(), times.tolist(), strict=True):
                    source = messages.source(int(rows[row]))
                    yield replace(
                        why, detail=detail(int(of[row])), bodies=(bodies[row],), publish_times=(time,), source=source
                    )


def _by_attributes(attributes: Mapping[int, Mapping[str, str]], rows: Rows) -> Iterator[tuple[Mapping[str, str], Rows]]:
    """Yield attributes, and which of the rows have them."""
    if not attributes:
        yield NO_ATTRIBUTES, np.arange(len(rows))
        return
    alike: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
    for at, row in enumerate(rows.tolist()):
        alike[tuple(sorted(attributes[row].items())) if row in attributes else ()].append(at)
    for items, of in alike.items():
        yield dict(items) if items else NO_ATTRIBUTES, np.array(of)


def _by_source(source: Callable[[int], str], rows: Rows) -> Iterator[tuple[str, Rows, Times]]:
    """Yield what messages are numbered in, which of the rows are, and their numbers; no numbers if there are none."""
    at: dict[str, list[Rows]] = defaultdict(list)
    found: dict[str, list[Times]] = defaultdict(list)
    nowhere = []
    if isinstance(source, NumberedRuns):
        texts, numbers = source.at(rows)
        order = np.argsort(texts, kind="stable")
        for of in np.split(order, np.flatnonzero(np.diff(texts[order])) + 1):
            text = source.texts[texts[of[0]]]
            if numbered(f"{text}{numbers[of].max()}") == (text, numbers[of].max()):
                at[text].append(of)
                found[text].append(numbers[of])
            else:
                nowhere += of.tolist()
    else:
        for row, of_row in enumerate(rows.tolist()):
            if (place := numbered(source(of_row))) is None:
                nowhere.append(row)
            else:
                at[place[0]].append(np.array([row]))
                found[place[0]].append(np.array([place[1]]))
    for text, parts in at.items():
        yield text, np.concatenate(parts), np.concatenate(found[text])
    if nowhere:
        yield "", np.array(nowhere), np.empty(0, dtype=np.int64)


def _attempt(attributes: Mapping[str, str]) -> int:
    """Read the number of the attempt from a message's attributes; a publisher may have written any text there."""
    if (written := attributes.get(ATTEMPT)) is None:
        return 1
    return max(int(written), 1) if re.fullmatch("[0-9]{1,4}", written) else 1


@cache
def _software() -> str:
    """Return the version of this software; to find it takes longer than a record."""
    return metadata.version("uldp-stream")
