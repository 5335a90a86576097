"""A question about values is put to the counts that it is about."""

from collections.abc import Iterator

from uldp.mechanisms.questions.answer import Answer
from uldp.mechanisms.questions.compare import Correction
from uldp.pipelines.asking.groups import Wanted
from uldp.pipelines.asking.questions import Asked


def put(
    asked: Asked, wanted: Wanted, *, over: bool, compare: tuple[str, str] | None, correct: Correction
) -> Iterator[Answer]:
    """Yield the answers.

    Args:
        asked: The counts.
        wanted: The groups of values.
        over: Whether the numbers of spans are smoothed over time.
        compare: The names of two times; None without a comparison.
        correct: The correction of p-values of a comparison.

    Raises:
        RequestError: if a name or a group is unknown, or the counts give no answer.
    """
    if over:
        return asked.over_time()
    if compare is not None:
        return asked.compare(*compare, wanted, correct)
    return asked.sums(wanted) if wanted else asked.tables()
