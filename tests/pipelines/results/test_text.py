"""Estimates as text for a terminal, and as JSON, which says of which value a number is."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests import build
from tests.build import HOUR, START
from tests.pipelines.results.samples import COUNTS, DIGEST, ESTIMATE
from uldp.pipelines.results.json_lines import to_json
from uldp.pipelines.results.text import accounting_text, estimate_text, skew_text, window_text
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import Accounting, Signals
from uldp.schemas.table import Table


def table(name: str, shape: list[int], values: list[float], stderr: list[float], **fields: Any) -> dict[str, Any]:
    """A table without intervals from 100 reports, as JSON."""
    empty: dict[str, Any] = {"of": [], "keys": None, "level": 0.95, "n": 100, "whole": False}
    empty |= dict.fromkeys(("unbiased", "low", "high", "low_forged", "high_forged"))
    return (
        empty
        | {"name": name, "shape": shape, "values": values, "stderr": stderr, "basis": "none", "simultaneous": False}
        | fields
    )


class TestJson:
    def test_line(self) -> None:
        assert json.loads(json.dumps(to_json(ESTIMATE, COUNTS, None))) == {
            "collection": "c",
            "version": 1,
            "window_start": "2026-01-01T09:00:00Z",
            "window_end": "2026-01-01T10:00:00Z",
            "pane": {"kind": "on_time", "revision": 2},
            "n": 100,
            "mechanism": "urr",
            "epsilon": 1.5,
            "lasting_epsilon": None,
            "budget": None,
            "shuffle": [{"of": [], "reports": 60, "epsilon": 0.25, "delta": 1e-6}],
            "estimator": "empirical",
            "assume_forgers": None,
            "device_digest": DIGEST,
            "distribution": [0.25, 0.7512, -0.0012],
            "stderr": [0.031, 0.0214, 0.01],
            "tags": {"home": {"mass": 0.05, "stderr": 0.024}},
            "bound": 0.1,
            "counts": [30, 40, 10, 20],
            "tables": [
                table("share", [3], [0.25, 0.7512, -0.0012], [0.031, 0.0214, 0.01], whole=True),
                table("hidden", [1], [0.05], [0.024], keys=["home"]),
                table("bound", [1], [0.1], [0.0]),
            ],
            "accounting": {"received": 107, "counted": 100, "duplicate": 4, "late": 2, "rejected": 1, "missing": 0},
            "flags": ["improbable_counts"],
            "supersedes": {"revision": 1, "n": 90},
            "signals": {
                "early": [0, 3],
                "past": [60, 30, 0, 7],
                "improbable_reports": 2,
                "busiest_sender": {"digest": "00000000000000ff", "reports": 50},
            },
        }

    def test_has_every_field_of_the_schema(self) -> None:
        renderings = {"distribution", "stderr", "tags", "bound", "counts"}
        fields = {field["name"] for field in load_schema("estimate")["fields"]}
        assert to_json(ESTIMATE, None, None).keys() == fields | renderings

    def test_without_a_statistic_or_shares(self) -> None:
        mean = build.table("mean", [12.5], [0.5])
        line = to_json(replace(ESTIMATE, tables=(mean,)), None, None)
        renderings = [line[name] for name in ("distribution", "stderr", "tags", "bound", "counts")]
        assert renderings == [None, None, {}, 0.0, None]
        assert line["tables"][0]["values"] == [12.5]


COLOURS = build.spec(domain={"labels": ["red", "green", "blue"]})


ONLY_TABLES = "whoever sees only these tables, with ids, times and senders dropped by a trusted party, is given"


class TestText:
    def test_block(self) -> None:
        assert estimate_text(ESTIMATE, COLOURS, top=2) == "\n".join(
            [
                "c v1  2026-01-01 09:00 to 10:00 UTC  empirical",
                "  n 100  pane on_time, revision 2  urr, epsilon 1.5",
                "  reports of one user add up: t reports spend t times epsilon",
                f"  {ONLY_TABLES}, in this window",
                "    epsilon 0.25 (delta 1e-06) by one of 60 protected reports",
                "  107 received = 100 counted + 4 duplicate + 2 late + 1 rejected",
                "  flags: improbable_counts",
                "  supersedes revision 1, n 90",
                "  clocks past: 97 reports, half by less than 1s, 99 % by less than 8s",
                "  clocks early: 3 reports, half by less than 2s, 99 % by less than 2s",
                "  busiest sender: 00000000000000ff, 50 reports",
                "  the 2 largest of 3 values, in % ± standard error",
                "    green   75.1  ± 2.1",
                "      red   25.0  ± 3.1",
                "  behind tags, in % ± standard error",
                "     home    5.0  ± 2.4",
                "    wrong background knowledge costs at most 0.1 in l1 (Theorem 1)",
            ]
        )

    def test_without_flags_tags_and_privacy(self) -> None:
        plain = replace(
            ESTIMATE, flags=(), supersedes=None, signals=Signals(), mechanism="identity", epsilon=None, shuffle=()
        )
        text = estimate_text(replace(plain, tables=plain.tables[:1]), COLOURS)
        assert "identity, no privacy" in text
        assert "flags" not in text
        assert "tags" not in text
        assert text.endswith("     blue   -0.1  ± 1.0")

    @pytest.mark.parametrize(
        ("start", "end", "text"),
        [
            (START, START + HOUR, "2026-01-01 09:00 to 10:00 UTC"),
            (START, START + 24 * HOUR, "2026-01-01 09:00 to 2026-01-02 09:00 UTC"),
            (START, START + 500, "2026-01-01 09:00 to 09:00:00.500 UTC"),
        ],
    )
    def test_window(self, start: int, end: int, text: str) -> None:
        assert window_text(replace(COUNTS, window_start=start, window_end=end)) == text

    @pytest.mark.parametrize(
        ("counts", "text"),
        [
            ((49, 1, 49, 1), "half by less than 2s, 99 % by less than 4s"),
            ((49, 2, 47, 0, 0, 0, 2), "half by less than 2s, 99 % by less than 2m"),
            ((1, *[0] * 22, 1), "half by less than 1s, 99 % by 48d or more"),
        ],
    )
    def test_clock_skew(self, counts: tuple[int, ...], text: str) -> None:
        assert skew_text(counts) == text

    def test_an_accounting_that_does_not_close_says_so(self) -> None:
        text = "10 received = 10 counted + 0 duplicate + 0 late + 0 rejected"
        assert accounting_text(Accounting(received=10, counted=10)) == text
        assert accounting_text(Accounting(10, 10, missing=1)) == f"{text}; up to 1 message missing"
        assert accounting_text(Accounting(10, 10, missing=1000)) == f"{text}; up to 1,000 messages missing"
        assert "does not add up" in accounting_text(Accounting(received=10, counted=9))
        assert "does not add up" not in accounting_text(Accounting(received=10, counted=9, late=1))


LABELS = ["red", "green", "blue"]
RECORD = build.spec(
    domain={"record": {"colour": {"labels": LABELS}, "age": {"number": {"low": 0, "high": 90}}}},
    mechanism={
        "name": "sample-one",
        "epsilon": 1.0,
        "of": {"colour": {"name": "rr"}, "age": {"name": "block", "bins": 3}},
    },
)
SHARE = build.table("share", [0.2, 0.3, 0.5], [0.1] * 3)


@pytest.mark.parametrize(
    ("spec", "table", "keys"),
    [
        (build.spec(domain={"labels": LABELS}), SHARE, LABELS),
        (build.spec(domain={"labels": LABELS}), replace(SHARE, name=build.table("visible", [1], [0]).name), LABELS),
        (build.spec(domain={"size": 3}), SHARE, None),
        (build.spec(domain={"labels": LABELS}), build.table("hidden", [0.1], [0.1], keys=("home",)), ["home"]),
        (build.spec(domain={"labels": LABELS}), build.table("bound", [0.2], [0.0]), None),
        (RECORD, replace(SHARE, of=("colour",)), LABELS),
        (RECORD, replace(SHARE, of=("age",)), ["0 to 30", "30 to 60", "60 to 90"]),
        (RECORD, build.table("mean", [40.0], [1.0], of=("age",)), None),
    ],
)
def test_each_entry_has_its_label_unless_its_index_is_all(spec: Any, table: Table, keys: list[str] | None) -> None:
    (line,) = to_json(replace(ESTIMATE, tables=(table,)), None, spec)["tables"]
    assert line["keys"] == keys
