"""The collection spec: what it says, and the defaults of what is left out."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests import build
from uldp.schemas.specs.collection import CollectionSpec

SAMPLE = """
collection: manhattan-checkins        # [a-z0-9-]{1,64}
version: 1
domain: {size: 625}                   # or {labels: [...]}, or {labels_file: cells.csv}
sensitive: [51, 52, 77]               # X_S, common to all users; `all` for plain LDP mechanisms
mechanism: {name: urr, epsilon: 6.4378}
tags:                                 # PUM's bots; absent: no PUM
  - {name: home, background: background/home.csv}
  - {name: others}                    # no background: proportional to r̂ over X_N
window: {size: 1h, early_every: 30s, allowed_lateness: 1d}   # period: for sliding
estimator: mle                        # the published one; a list publishes several
limits: {min_reports: 1000, max_rejected_ratio: 0.1}
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    (tmp_path / "background").mkdir()
    (tmp_path / "background" / "home.csv").write_text("value,weight\n3,1\n4,2.5\n3,0.5\n")
    path = tmp_path / "spec.yaml"
    path.write_text(SAMPLE, encoding="utf-8")
    return path


def test_the_sample_says_all_that_there_is_to_say(sample: Path) -> None:
    spec = CollectionSpec.load(sample)
    assert spec.key == ("manhattan-checkins", 1)
    assert spec.size == 625
    assert spec.labels[:2] == ["0", "1"]
    assert np.flatnonzero(spec.sensitive_mask).tolist() == [51, 52, 77]
    assert (spec.mechanism.name, spec.mechanism.epsilon) == ("urr", 6.4378)
    assert [tag.name for tag in spec.tags] == ["home", "others"]
    assert spec.background.shape == (2, 625)
    assert {int(x): float(spec.background[0, x]) for x in np.flatnonzero(spec.background[0])} == {3: 0.375, 4: 0.625}
    assert np.isnan(spec.background[1]).all()
    assert spec.window.size == timedelta(hours=1)
    assert spec.window.period is None
    assert spec.window.early_every == timedelta(seconds=30)
    assert spec.window.allowed_lateness == timedelta(days=1)
    assert spec.estimators == ["mle"]
    assert (spec.limits.min_reports, spec.limits.max_rejected_ratio) == (1000, 0.1)


def test_what_is_left_out_has_a_default() -> None:
    spec = CollectionSpec.parse(build.MINIMAL)
    assert spec.sensitive_mask.all()
    assert spec.tags == []
    assert spec.background.shape == (0, 5)
    assert (spec.window.early_every, spec.window.allowed_lateness) == (None, timedelta(0))
    assert spec.estimators == ["auto"]
    assert (spec.limits.min_reports, spec.limits.max_rejected_ratio) == (100, None)
    assert spec.limits.max_clock_skew == timedelta(minutes=10)
    assert spec.max_age == timedelta(days=365)


def test_a_spec_written_out_is_the_same_spec(sample: Path) -> None:
    spec = CollectionSpec.load(sample)
    written = yaml.safe_dump(spec.model_dump(mode="json", exclude_none=True))
    sample.write_text(written)
    assert CollectionSpec.load(sample).model_dump() == spec.model_dump()


YEAR, SLICES = timedelta(days=365), 10_000


@pytest.mark.parametrize(
    ("window", "limits", "age"),
    [
        ({"size": "1h"}, {}, YEAR),
        ({"size": "1h"}, {"max_age": "7d"}, timedelta(days=7)),
        ({"size": "1h"}, {"max_age": "36500d"}, timedelta(days=36_500)),
        ({"size": "300d", "allowed_lateness": "65d"}, {}, YEAR),
        ({"size": "300d", "allowed_lateness": "66d"}, {}, timedelta(days=366)),
        ({"size": "1m"}, {}, SLICES * timedelta(minutes=1)),
        ({"size": "1d", "period": "1m"}, {}, SLICES * timedelta(minutes=1)),
        ({"size": "1s", "allowed_lateness": "1d"}, {}, timedelta(days=1, seconds=1)),
        ({"size": "6d", "period": "1m", "allowed_lateness": "2d"}, {}, timedelta(days=8)),
        ({"size": "365000d"}, {}, timedelta(days=365_000)),
    ],
)
def test_a_report_may_be_a_year_or_ten_thousand_slices_old_but_never_less_than_a_window_counts(
    window: dict[str, str], limits: dict[str, str], age: timedelta
) -> None:
    assert build.spec(window=window, limits=limits).max_age == age
