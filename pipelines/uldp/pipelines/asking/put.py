"""A question about values is put to the counts that it is about."""

from collections.abc import Iterator, Sequence

from uldp.mechanisms.questions.answer import Answer
from uldp.mechanisms.questions.compare import Correction
from uldp.pipelines.asking.groups import Wanted
from uldp.pipelines.asking.questions import Asked
from uldp.pipelines.asking.records import WantedTable


def put(
    asked: Asked,
    wanted: Wanted,
    *,
    over: bool,
    compare: tuple[str, str] | None,
    correct: Correction,
    same_devices: bool,
    ranges: Sequence[str] = (),
    levels: Sequence[float] = (),
    tables: Sequence[WantedTable] = (),
    beside: Asked | None = None,
) -> Iterator[Answer]:
    """Yield the answers; RequestError if a name or a group is unknown, or the counts give no answer.

    ``compare`` names two times, of which the second is of ``beside`` if that is given. ``over`` smooths over time.
    Ranges are text, and the levels of quantiles between 0 and 1. All tables are given if none is asked for.
    """
    if over:
        return asked.over_time()
    if compare is not None:
        return asked.compare(*compare, wanted, correct, same_devices=same_devices, beside=beside)
    if ranges or levels:
        return asked.ranges(ranges, levels)
    return asked.sums(wanted) if wanted else asked.tables(tables)
