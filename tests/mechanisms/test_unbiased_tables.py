"""The unbiased estimates of tables: those of ``linear``, whose mean weighted by n is that of the summed counts."""

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.protocols import Example, examples
from uldp.mechanisms.protocol.cells import as_dense
from uldp.schemas.arrays import Counts
from uldp.schemas.table import Table, TableName

EXAMPLES = examples()
#: The quantities that have no unbiased estimate: they are no means of reports.
NONE = {
    TableName.BOUND,
    TableName.BAND,
    TableName.QUANTILE,
    TableName.P_VALUE,
    TableName.FOUND,
    TableName.GIVEN,
    TableName.INDEPENDENCE,
}
#: Of these the estimate is linear in the counts, with weights that do not depend on them.
LINEAR = {TableName.VISIBLE, TableName.HIDDEN, TableName.MEAN}


def window(example: Example, n: int, seed: int) -> Counts:
    """The cells of n devices."""
    rng = default_rng(seed)
    payloads = example.protocol.perturb(example.hold(rng, n), rng)
    (cells,) = example.protocol.mechanism.tally([payloads], np.zeros(n, dtype=np.int64), 1)
    return as_dense(cells)


def tables(example: Example, cells: Counts, n: int) -> dict[tuple[TableName, tuple[str, ...]], Table]:
    decoder = example.protocol.decoder
    return {(table.name, table.of): table for table in decoder.tables(cells, n, decoder.estimators[0])}


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_may_be_averaged_has_an_unbiased_estimate_with_an_error(name: str) -> None:
    found = tables(EXAMPLES[name], window(EXAMPLES[name], 300, 1), 300)
    assert found
    for (quantity, _), table in found.items():
        if table.unbiased is None:
            ratio = quantity is TableName.MEAN and table.keys is not None  # of the numbers of keys
            assert ratio or quantity in {*NONE, TableName.SHARE, TableName.ZONE, TableName.UNEXPLAINED}
        else:
            assert quantity not in NONE
            assert table.unbiased.shape == table.stderr.shape


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_mean_weighted_by_reports_is_the_estimate_of_the_summed_counts(name: str) -> None:
    example = EXAMPLES[name]
    mechanisms = {variable.mechanism.name for variable in example.spec.variables.values()}
    if example.spec.mechanism.user_groups or mechanisms & {"bit-flip", "tree", "pairs", "marginals", "prefixes"}:
        pytest.skip(
            "the weight of a report depends on how many reports of its level, design, pair, view or length there are"
        )
    one, other = (window(example, n, seed) for n, seed in ((400, 1), (100, 2)))
    first, second, both = (tables(example, *of) for of in ((one, 400), (other, 100), (one + other, 500)))
    has_tags = any(variable.tags for variable in example.spec.variables.values())
    for key, total in both.items():
        if total.unbiased is None or (key[0] not in LINEAR and has_tags) or key not in first or key not in second:
            continue
        parts = [each[key] for each in (first, second)]
        mean = np.sum([part.n * part.unbiased for part in parts if part.unbiased is not None], axis=0) / total.n
        assert mean == pytest.approx(total.unbiased, abs=1e-9)
