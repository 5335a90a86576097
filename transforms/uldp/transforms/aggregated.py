"""What the aggregator gives, for the transforms that write it."""

from typing import NamedTuple

from apache_beam.pvalue import PCollection

from uldp.collector.columns import MixedColumns
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic


class Aggregated(NamedTuple):
    """The outputs of ``Aggregate``.

    Attributes:
        estimates: Each pane of each window, by each estimator of its spec.
        counts: The sufficient statistic of each pane, even if no estimate is published.
        late: Messages that hold the reports that arrived after their windows had closed; backfill them.
        rejected: Records that hold the reports that cannot be counted, one record for each message and reason.
        missing: Records of messages that the source lost before they could be read. Their sum is exact, while the
            accounting of each window that was open has all of them.
        kept: No collection, but a tuple: empty, except in a local stream of the command line, which keeps in it one of
            the reports that were counted, with their ids.
    """

    estimates: PCollection[Estimate]
    counts: PCollection[Statistic]
    late: PCollection[Message]
    rejected: PCollection[Rejected]
    missing: PCollection[Missing]
    kept: tuple[PCollection[MixedColumns], ...] = ()
