"""Reports that are sets of values, from the simulated device to the estimates at the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests import build
from tests.pipelines.command import Run
from uldp.schemas.specs.collection import CollectionSpec

USERS, K = 20_000, 12
ZIPF = 1 / np.arange(1, K + 1)
SHARES = ZIPF / ZIPF.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "chosen"), [(0.5, 5), (1.0, 3), (4.0, 1)])
@pytest.mark.parametrize("batching", [(), ("--batch-size", "100")], ids=["single", "batches"])
def test_simulated_sets_give_the_shares_of_the_truth(
    epsilon: float, chosen: int, batching: tuple[str, ...], uldp: Run, tmp_path: Path
) -> None:
    given = build.MINIMAL | {"domain": {"size": K}, "mechanism": {"name": "ss", "epsilon": epsilon}}
    given["estimator"] = ["empirical", "threshold", "norm-sub"]
    spec, truth = tmp_path / "spec.yaml", tmp_path / "truth.csv"
    spec.write_text(yaml.safe_dump(given))
    truth.write_text("value,tag,weight\n" + "".join(f"{value},,{weight}\n" for value, weight in enumerate(SHARES)))
    stream, results = tmp_path / "stream", tmp_path / "results"
    trouble = ("--duplicates", "0.01", "--malformed", "0.01", "--duration", "1h")
    sent = uldp("simulate", spec, "--truth", truth, "--users", str(USERS), "--to", stream, *trouble, *batching)
    assert sent[0] == 0
    code, _, err = uldp("backfill", "--spec", spec, "--from", stream, "--to", results)
    assert (code, "error" in err) == (0, False)

    code, out, _ = uldp("show", results, "--json", "--estimator", "empirical")
    (shown,) = map(json.loads, out.splitlines())
    (share,) = shown["tables"]
    values, stderr = np.array(share["values"]), np.array(share["stderr"])
    assert code == 0
    assert share["n"] > 0.9 * USERS
    # Each report supports as many values, so the shares sum to one.
    assert values.sum() == pytest.approx(1, abs=1e-9)
    assert np.abs((values - SHARES) / stderr).max() < 5
    mechanism = build.pure_mechanism(CollectionSpec.load(spec))
    assert mechanism.channel.supported == chosen
