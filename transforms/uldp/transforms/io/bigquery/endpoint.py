"""A table of BigQuery as an endpoint, which takes estimates and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.transforms.io.bigquery.sink import WriteEstimatesToBigQuery
from uldp.transforms.io.bigquery.table import check_table, parse_table
from uldp.transforms.io.endpoints import Endpoint, Keyed

_SCHEME = "bigquery:"


def parse(uri: str, config: Path | None = None) -> "BigQueryEndpoint":
    """Read ``bigquery:PROJECT.DATASET.TABLE``. No config is needed.

    Raises:
        BigQueryError: if it has another form.
    """
    return BigQueryEndpoint(parse_table(uri.removeprefix(_SCHEME)))


@dataclass(frozen=True)
class BigQueryEndpoint(Endpoint):
    """A table to which jobs append estimates.

    Attributes:
        table: ``PROJECT.DATASET.TABLE``.
    """

    table: str

    only_use = "takes only estimates, from --estimates-to"

    def __str__(self) -> str:
        return f"{_SCHEME}{self.table}"

    def check_estimates(self) -> None:
        """Ask BigQuery; see ``check_table``."""
        check_table(self.table)

    def publish_estimates(
        self, estimates: PCollection[Estimate], specs: SharedSpecs, keyed: Callable[[Estimate], Keyed], *, native: bool
    ) -> None:
        """Append a row for each estimate, on each runner with the same transform; rows have keys of their own."""
        _ = estimates | "WriteToBigQuery" >> WriteEstimatesToBigQuery(self.table, specs)
