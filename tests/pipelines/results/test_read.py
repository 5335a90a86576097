"""Directories of results as readers find them, damaged ones too."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import fastavro
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from uldp.pipelines.results.read import (
    ResultsError,
    check_selection,
    current,
    newest,
    read_counts,
    read_estimates,
    read_rejected,
    read_specs,
    spec_of,
    to_json,
    with_specs,
)
from uldp.pipelines.results.selection import Selection, SelectionError
from uldp.pipelines.results.text import (
    accounting_text,
    decimals,
    estimate_text,
    percent,
    skew_text,
    unpublished_text,
    window_text,
)
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.framing import Schema, load_schema, parse_schema
from uldp.schemas.records import (
    Accounting,
    Estimate,
    Pane,
    PaneKind,
    Rejected,
    Sender,
    Signals,
    Superseded,
    SupportCounts,
    TagMass,
)
from uldp.transforms.io.results import counts_file, estimate_file, window_folder, write_file

NINE, HOUR = 1_767_258_000_000, 3_600_000  # 2026-01-01T09:00Z

SPEC = """
collection: c
version: 1
domain: {labels: [red, green, blue]}
sensitive: [red]
mechanism: {name: urr, epsilon: 1.5}
tags: [{name: home}]
window: {size: 1h}
"""

COUNTS = SupportCounts(
    "c",
    1,
    NINE,
    NINE + HOUR,
    Pane(PaneKind.ON_TIME, 2),
    np.array([30, 40, 10, 20]),
    Accounting(107, 100, 4, 2, 1),
    flags=("improbable_counts",),
    supersedes=Superseded(1, 90, np.array([27, 36, 9, 18])),
    signals=Signals((0, 3), (60, 30, 0, 7), 2, Sender("00000000000000ff", 50)),
)
ESTIMATE = Estimate(
    COUNTS,
    "urr",
    1.5,
    "empirical",
    np.array([0.25, 0.7512, -0.0012]),
    np.array([0.031, 0.0214, 0.01]),
    {"home": TagMass(0.05, 0.024)},
    0.1,
)
REJECTED = Rejected("decode", "not_avro", "starts with 00", b"\x00", {"k": "v"}, NINE, "s:1", 1, "0.1.0")


def write(path: Path, schema: Schema, *values: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, schema, values)
    return path


def write_estimate(out: Path, estimate: Estimate = ESTIMATE, name: str = "000002.empirical.avro") -> Path:
    path = out / "estimates" / "c-v1" / "20260101T090000Z--20260101T100000Z" / name
    return write(path, load_schema("estimate"), estimate.to_avro())


def fired(
    received: int, revision: int, *, estimator: str = "mle", version: int = 1, start: int = NINE, kind: str = "early"
) -> Estimate:
    counts = replace(
        COUNTS,
        version=version,
        window_start=start,
        pane=Pane(PaneKind(kind), revision),
        accounting=Accounting(received, received),
    )
    return replace(ESTIMATE, support=counts, estimator=estimator)


#: Fields that schemas did not have at first.
NEW = {"flags", "supersedes", "signals"}


class TestReading:
    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        write_estimate(tmp_path)
        (estimate,) = read_estimates(tmp_path)
        assert estimate.to_avro() == ESTIMATE.to_avro()

    def test_counts(self, tmp_path: Path) -> None:
        write(tmp_path / "counts/c-v1/w/000002.avro", load_schema("support_counts"), COUNTS.to_avro())
        (counts,) = read_counts(tmp_path)
        assert counts.to_avro() == COUNTS.to_avro()

    def test_rejected(self, tmp_path: Path) -> None:
        write(tmp_path / "rejected/a.avro", load_schema("rejected"), REJECTED.to_avro(), REJECTED.to_avro())
        assert list(read_rejected(tmp_path)) == [REJECTED, REJECTED]

    def test_nothing_rejected_is_fine(self, tmp_path: Path) -> None:
        assert list(read_rejected(tmp_path)) == []

    def test_a_file_that_is_still_written_is_left_out(self, tmp_path: Path) -> None:
        write_estimate(tmp_path)
        for directory in ("estimates/c-v1/20260101T090000Z--20260101T100000Z", "rejected"):
            (tmp_path / directory).mkdir(parents=True, exist_ok=True)
            (tmp_path / directory / ".tmp-1.avro").write_bytes(b"half")
        assert len(read_estimates(tmp_path)) == 1
        assert list(read_rejected(tmp_path)) == []

    def test_a_file_of_an_older_schema_is_resolved(self, tmp_path: Path) -> None:
        schema = load_schema("estimate")
        older = parse_schema(
            {
                "type": "record",
                "name": "uldp.Estimate",
                "fields": [field for field in schema["fields"] if field["name"] not in NEW],
            }
        )
        write(tmp_path / "estimates/c-v1/w/000000.empirical.avro", older, ESTIMATE.to_avro())
        (estimate,) = read_estimates(tmp_path)
        assert (estimate.support.flags, estimate.support.supersedes, estimate.support.signals) == ((), None, Signals())

    @pytest.mark.parametrize("read", [read_estimates, read_counts, read_rejected, read_specs])
    def test_no_directory(self, tmp_path: Path, read: Any) -> None:
        with pytest.raises(ResultsError, match="nowhere: no such file or directory; give a directory that holds"):
            read(tmp_path / "nowhere")

    def test_no_results_yet(self, tmp_path: Path) -> None:
        assert read_estimates(tmp_path) == read_counts(tmp_path) == []

    def test_no_results(self, tmp_path: Path) -> None:
        with pytest.raises(ResultsError, match=f"{tmp_path}: holds nothing; give a directory that holds results"):
            read_specs(tmp_path)

    @pytest.mark.parametrize(
        "damage",
        [
            pytest.param(lambda data: b"", id="empty"),
            pytest.param(lambda data: b"collection,version\nc,1\n", id="not avro"),
            pytest.param(lambda data: data[:40], id="cut in the header"),
            pytest.param(lambda data: data[:-30], id="cut in a block"),
            pytest.param(lambda data: data[:-16] + bytes(16), id="wrong sync marker"),
        ],
    )
    def test_a_damaged_file_is_named(self, tmp_path: Path, damage: Any) -> None:
        path = write_estimate(tmp_path)
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ResultsError, match=f"{path}: not a whole Avro file of schema estimate .*; remove it and"):
            read_estimates(tmp_path)

    def test_a_file_of_another_schema_is_named(self, tmp_path: Path) -> None:
        path = write(tmp_path / "estimates/c-v1/w/000000.mle.avro", load_schema("rejected"), REJECTED.to_avro())
        with pytest.raises(ResultsError, match=str(path)):
            read_estimates(tmp_path)

    def test_a_path_that_cannot_be_opened_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "rejected/a.avro"
        path.mkdir(parents=True)
        with pytest.raises(ResultsError, match=f"{path}: Is a directory; check the path and its permissions"):
            list(read_rejected(tmp_path))


class TestSpecs:
    @pytest.fixture
    def out(self, tmp_path: Path) -> Path:
        (tmp_path / "specs/c-v1").mkdir(parents=True)
        (tmp_path / "specs/c-v1/spec.yaml").write_text(SPEC)
        return tmp_path

    def test_of_an_estimate(self, out: Path) -> None:
        assert spec_of(ESTIMATE, read_specs(out)).labels == ["red", "green", "blue"]

    def test_missing(self, out: Path) -> None:
        with pytest.raises(ResultsError, match=r"specs/c-v2/spec\.yaml is missing .* copy the spec there"):
            spec_of(fired(1, 0, version=2), read_specs(out))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("[red, green, blue]", "[red, green, blue, black]"),
            ("[{name: home}]", "[{name: home}, {name: others}]"),
            ("epsilon: 1.5", "epsilon: 1.6"),
            ("urr", "urap"),
        ],
    )
    def test_of_another_channel(self, out: Path, old: str, new: str) -> None:
        (out / "specs/c-v1/spec.yaml").write_text(SPEC.replace(old, new))
        with pytest.raises(ResultsError, match=r"specs/c-v1/spec\.yaml is not the spec .* put that spec back"):
            spec_of(ESTIMATE, read_specs(out))


class TestNewest:
    def test_is_the_highest_revision(self) -> None:
        assert newest([fired(10, 0), fired(20, 2), fired(15, 1)]) == [fired(20, 2)]

    def test_after_a_restart_is_what_received_the_most(self) -> None:
        before, after = [fired(10, 0), fired(20, 1), fired(30, 2)], [fired(30, 0), fired(40, 1)]
        assert newest(before + after) == [fired(40, 1)]

    def test_revision_decides_between_panes_that_received_the_same(self) -> None:
        on_time = fired(30, 3, kind="on_time")
        assert newest([on_time, fired(30, 2)]) == [on_time]

    def test_an_early_pane_of_a_killed_run_does_not_stand_for_the_on_time_one(self) -> None:
        on_time = fired(30, 1, kind="on_time")
        assert newest([on_time, fired(30, 7)]) == [on_time]

    def test_one_for_each_window_version_and_estimator_in_their_order(self) -> None:
        panes = [
            fired(1, 0),
            fired(1, 0, estimator="threshold"),
            fired(1, 0, start=NINE + HOUR),
            fired(1, 0, version=2),
        ]
        assert newest(panes[::-1]) == panes

    def test_of_counts(self) -> None:
        assert newest([fired(10, 1).support, fired(20, 0).support]) == [fired(20, 0).support]

    @given(st.permutations([(10, 0), (20, 1), (20, 0), (30, 0), (30, 2), (30, 1)]))
    def test_the_order_of_reading_does_not_matter(self, panes: list[tuple[int, int]]) -> None:
        (pane,) = newest([fired(*pane) for pane in panes])
        assert (pane.support.accounting.received, pane.support.pane.revision) == (30, 2)

    def test_an_incomplete_pane_gives_way_to_one_that_holds_as_much(self) -> None:
        stopped = fired(30, 7)
        stopped = replace(stopped, support=replace(stopped.support, flags=("incomplete",)))
        assert newest([stopped, fired(30, 0)]) == [fired(30, 0)]
        assert newest([stopped, fired(29, 8)]) == [stopped]


class TestCurrent:
    """Windows of which no estimate is published have none, whatever was published of them before."""

    SPECS: ClassVar[dict[tuple[str, int], CollectionSpec]] = {
        ("c", 1): CollectionSpec.parse(
            {
                "collection": "c",
                "version": 1,
                "domain": {"size": 3},
                "mechanism": {"name": "rr", "epsilon": 1.5},
                "window": {"size": "1h"},
                "limits": {"max_rejected_ratio": 0.1, "when_exceeded": "stop"},
            }
        )
    }

    @pytest.mark.parametrize(
        ("flags", "unpublished"), [((), False), (("improbable_bits",), False), (("rejected_ratio",), True)]
    )
    def test_a_stopped_window(self, flags: tuple[str, ...], unpublished: bool, tmp_path: Path) -> None:
        write_estimate(tmp_path)
        later = replace(COUNTS, pane=Pane(PaneKind.LATE, 3), flags=flags)
        write(tmp_path / "counts/c-v1/w/000003.avro", load_schema("support_counts"), later.to_avro())
        estimates, panes = current(tmp_path, self.SPECS)
        assert (len(estimates), len(panes)) == ((0, 1) if unpublished else (1, 0))

    def test_counts_alone(self, tmp_path: Path) -> None:
        few = replace(COUNTS, flags=("few_reports",))
        write(tmp_path / "counts/c-v1/w/000002.avro", load_schema("support_counts"), few.to_avro())
        estimates, (pane,) = current(tmp_path, self.SPECS)
        assert estimates == []
        assert unpublished_text(pane).splitlines()[:4] == [
            "c v1  2026-01-01 09:00 to 10:00 UTC  no estimate is published",
            "  n 100  pane on_time, revision 2",
            "  107 received = 100 counted + 4 duplicate + 2 late + 1 rejected",
            "  flags: few_reports",
        ]

    def test_nothing_yet(self, tmp_path: Path) -> None:
        assert current(tmp_path, self.SPECS) == ([], [])


def at(hour: int, estimator: str = "mle", revision: int = 2) -> Estimate:
    """An estimate of an hour of the day."""
    start = NINE + hour * HOUR
    support = replace(COUNTS, window_start=start, window_end=start + HOUR, pane=Pane(PaneKind.ON_TIME, revision))
    return replace(ESTIMATE, support=support, estimator=estimator)


def save(out: Path, *estimates: Estimate) -> None:
    for estimate in estimates:
        for name, content in (estimate_file(estimate), counts_file(estimate.support)):
            write_file(str(out / name), content)


def hours(estimates: list[Estimate]) -> list[int]:
    return [(estimate.support.window_start - NINE) // HOUR for estimate in estimates]


class TestDamage:
    """A damaged file hides its window and no other."""

    SPECS = TestCurrent.SPECS

    def damage(self, out: Path, kind: str, hour: int, change: Callable[[bytes], bytes]) -> Path:
        folder = window_folder(at(hour).support)
        path = min((out / kind / folder).glob("*.avro"))
        path.write_bytes(change(path.read_bytes()))
        return path

    @pytest.mark.parametrize("kind", ["estimates", "counts"])
    def test_hides_its_window_alone(self, tmp_path: Path, kind: str) -> None:
        save(tmp_path, at(0), at(1, revision=0), at(1, revision=1), at(2))
        path = self.damage(tmp_path, kind, 1, lambda data: data[:-30])
        damaged: list[ResultsError] = []
        estimates, unpublished = current(tmp_path, self.SPECS, damaged=damaged.append)
        assert (hours(estimates), unpublished) == ([0, 2], [])
        assert [str(error).startswith(f"{path}: not a whole Avro file") for error in damaged] == [True]

    def test_is_raised_unless_somebody_takes_it(self, tmp_path: Path) -> None:
        save(tmp_path, at(0))
        path = self.damage(tmp_path, "counts", 0, lambda data: b"")
        for read in (read_counts, lambda out: current(out, self.SPECS)):
            with pytest.raises(ResultsError, match=str(path)):
                read(tmp_path)

    def test_all_damaged_files_are_named(self, tmp_path: Path) -> None:
        save(tmp_path, at(0), at(1))
        paths = [
            self.damage(tmp_path, kind, hour, lambda data: b"") for hour in (0, 1) for kind in ("counts", "estimates")
        ]
        damaged: list[ResultsError] = []
        assert current(tmp_path, self.SPECS, damaged=damaged.append) == ([], [])
        assert [str(error).split(": ")[0] for error in damaged] == [str(path) for path in paths]

    @pytest.mark.parametrize(
        "forged",
        [
            {"window_end": 2**62},
            {"window_start": NINE + 2 * HOUR},
            {"collection": "other"},
            {"estimator": "em"},
            {"counts": [-1, 0, 0, 0]},
            {"counts": [101, 0, 0, 0]},
            {"counts": []},
            {"accounting": {"received": 107, "counted": -100, "duplicate": 4, "late": 2, "rejected": 1}},
            {"accounting": {"received": 0, "counted": 0, "duplicate": 0, "late": 0, "rejected": 0}, "counts": [0]},
            {"signals": COUNTS.signals.to_avro() | {"past": [0] * 5000}},
            {"distribution": [float("nan")] * 3},
            {"distribution": [1.0, 0.0]},
            {"distribution": [], "stderr": []},
            {"stderr": [float("inf")] * 3},
            {"stderr": [-1.0] * 3},
            {"bound": 1e300},
            {"tags": {"home": {"mass": float("nan"), "stderr": 0.0}}},
        ],
        ids=str,
    )
    def test_what_no_job_writes_is_damage(self, tmp_path: Path, forged: dict[str, Any]) -> None:
        save(tmp_path, at(0), at(1))
        name, _ = estimate_file(at(1))
        write(tmp_path / name, load_schema("estimate"), at(1).to_avro() | forged)
        damaged: list[ResultsError] = []
        estimates, _ = current(tmp_path, self.SPECS, damaged=damaged.append)
        assert (hours(estimates), len(damaged)) == ([0], 1)

    @given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
    def test_any_bytes_are_shown_or_named(
        self, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
    ) -> None:
        out = tmp_path_factory.getbasetemp() / "any bytes"
        save(out, at(0), at(1))
        name, content = estimate_file(at(1))
        forged = bytearray(content)
        for place, byte in changes:
            forged[place % len(forged)] = byte
        (out / name).write_bytes(forged)
        damaged: list[ResultsError] = []
        estimates, _ = current(out, self.SPECS, damaged=damaged.append)
        assert hours(estimates)[0] == 0
        assert len(estimates) + len(damaged) == 2
        for estimate in estimates:
            text = estimate_text(estimate, ["red", "green", "blue"][: len(estimate.distribution)] * 9)
            assert all(line.isprintable() for line in text.splitlines())
            json.loads(json.dumps(to_json(estimate), allow_nan=False))

    def test_an_estimate_under_another_spec_hides_no_other(self) -> None:
        spec = CollectionSpec.parse(yaml.safe_load(SPEC))
        other = replace(ESTIMATE, epsilon=9.0)
        damaged: list[ResultsError] = []
        found = list(with_specs([other, ESTIMATE, other], {spec.key: spec}, damaged.append))
        assert found == [(ESTIMATE, spec)]
        assert len(damaged) == 1


class TestSelection:
    SPECS = TestCurrent.SPECS

    @pytest.mark.parametrize(
        ("selection", "found"),
        [
            (Selection(), [0, 0, 1, 1, 2, 2]),
            (Selection(last=2), [1, 1, 2, 2]),
            (Selection(since=NINE + 2 * HOUR), [2, 2]),
            (Selection(estimator="em"), [0, 1, 2]),
            (Selection(last=1, estimator="mle", collection="c"), [2]),
            (Selection(collection="other"), []),
        ],
    )
    def test_chooses(self, tmp_path: Path, selection: Selection, found: list[int]) -> None:
        save(tmp_path, *(at(hour, estimator) for hour in range(3) for estimator in ("mle", "em")))
        estimates, _ = current(tmp_path, self.SPECS, selection)
        assert hours(estimates) == found

    def test_files_of_others_are_not_opened(self, tmp_path: Path) -> None:
        save(tmp_path, *(at(hour, estimator) for hour in range(3) for estimator in ("mle", "em")))
        for path in tmp_path.rglob("*.avro"):
            if window_folder(at(2).support) not in str(path) or path.name.endswith(".em.avro"):
                path.write_bytes(b"opened")
        estimates, _ = current(tmp_path, self.SPECS, Selection(last=1, estimator="mle"))
        assert hours(estimates) == [2]

    def test_a_window_without_an_estimate_is_one_of_the_last(self, tmp_path: Path) -> None:
        save(tmp_path, at(0))
        name, content = counts_file(replace(at(1).support, flags=("few_reports",)))
        write_file(str(tmp_path / name), content)
        estimates, (pane,) = current(tmp_path, self.SPECS, Selection(last=1))
        assert (estimates, pane.window_start) == ([], NINE + HOUR)

    def test_folders_of_other_names_are_read(self, tmp_path: Path) -> None:
        write(tmp_path / "estimates/c-v1/w/000002.mle.avro", load_schema("estimate"), at(0).to_avro())
        save(tmp_path, at(1))
        assert hours(current(tmp_path, self.SPECS, Selection(last=1))[0]) == [1]
        assert hours(current(tmp_path, self.SPECS, Selection(last=2))[0]) == [0, 1]

    def test_names_are_checked_against_specs_and_files(self, tmp_path: Path) -> None:
        save(tmp_path, at(0, "em"))
        for good in (Selection(collection="c"), Selection(estimator="em"), Selection(estimator="empirical")):
            check_selection(tmp_path, self.SPECS, good)
        with pytest.raises(
            SelectionError, match=r"no estimator 'emm' is there; did you mean 'em'[?] choose one of: em, emp"
        ):
            check_selection(tmp_path, self.SPECS, Selection(estimator="emm"))
        with pytest.raises(SelectionError, match=r"no collection 'd' is there; choose one of: c$"):
            check_selection(tmp_path, self.SPECS, Selection(collection="d"))


class TestJson:
    def test_line(self) -> None:
        assert json.loads(json.dumps(to_json(ESTIMATE))) == {
            "collection": "c",
            "version": 1,
            "window_start": "2026-01-01T09:00:00Z",
            "window_end": "2026-01-01T10:00:00Z",
            "pane": {"kind": "on_time", "revision": 2},
            "n": 100,
            "mechanism": "urr",
            "epsilon": 1.5,
            "estimator": "empirical",
            "distribution": [0.25, 0.7512, -0.0012],
            "stderr": [0.031, 0.0214, 0.01],
            "tags": {"home": {"mass": 0.05, "stderr": 0.024}},
            "bound": 0.1,
            "counts": [30, 40, 10, 20],
            "accounting": {"received": 107, "counted": 100, "duplicate": 4, "late": 2, "rejected": 1},
            "flags": ["improbable_counts"],
            "supersedes": {"revision": 1, "n": 90, "counts": [27, 36, 9, 18]},
            "signals": {
                "early": [0, 3],
                "past": [60, 30, 0, 7],
                "improbable_reports": 2,
                "busiest_sender": {"digest": "00000000000000ff", "reports": 50},
            },
        }

    def test_has_every_field_of_the_schema(self) -> None:
        assert to_json(ESTIMATE).keys() == {field["name"] for field in load_schema("estimate")["fields"]}


class TestText:
    def test_block(self) -> None:
        assert estimate_text(ESTIMATE, ["red", "green", "blue"], top=2) == "\n".join(
            [
                "c v1  2026-01-01 09:00 to 10:00 UTC  empirical",
                "  n 100  pane on_time, revision 2  urr, epsilon 1.5",
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
        support = replace(COUNTS, flags=(), supersedes=None, signals=Signals())
        plain = replace(ESTIMATE, support=support, mechanism="identity", epsilon=None, tags={}, bound=0.0)
        text = estimate_text(plain, ["red", "green", "blue"])
        assert "identity, no privacy" in text
        assert "flags" not in text
        assert "tags" not in text
        assert text.endswith("     blue   -0.1  ± 1.0")

    def test_a_terminal_is_not_obeyed(self) -> None:
        text = estimate_text(ESTIMATE, ["\x1b[2J\x1b]0;owned\x07", "gr\nün", "blue"])
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "gr\N{REPLACEMENT CHARACTER}ün" in text

    @pytest.mark.parametrize(
        ("start", "end", "text"),
        [
            (NINE, NINE + HOUR, "2026-01-01 09:00 to 10:00 UTC"),
            (NINE, NINE + 24 * HOUR, "2026-01-01 09:00 to 2026-01-02 09:00 UTC"),
            (NINE, NINE + 30_000, "2026-01-01 09:00 to 09:00:30 UTC"),
            (NINE, NINE + 500, "2026-01-01 09:00 to 09:00:00.500 UTC"),
        ],
    )
    def test_window(self, start: int, end: int, text: str) -> None:
        assert window_text(replace(COUNTS, window_start=start, window_end=end)) == text

    @pytest.mark.parametrize(
        ("counts", "text"),
        [
            ((100,), "half by less than 1s, 99 % by less than 1s"),
            ((49, 1, 49, 1), "half by less than 2s, 99 % by less than 4s"),
            ((49, 2, 47, 0, 0, 0, 2), "half by less than 2s, 99 % by less than 2m"),
            ((*[0] * 16, 1), "half by less than 19h, 99 % by less than 19h"),
            ((1, *[0] * 22, 1), "half by less than 1s, 99 % by 48d or more"),
        ],
    )
    def test_clock_skew(self, counts: tuple[int, ...], text: str) -> None:
        assert skew_text(counts) == text

    def test_an_accounting_that_does_not_close_says_so(self) -> None:
        assert "does not add up" in accounting_text(Accounting(received=10, counted=9))
        assert "does not add up" not in accounting_text(Accounting(received=10, counted=9, late=1))

    @pytest.mark.parametrize(
        ("stderr", "places", "text"),
        [
            ([0.021], 1, "2.1"),
            ([0.0034, 0.0, 0.0034], 2, "0.34"),
            ([0.00099], 3, "0.099"),
            ([0.2], 0, "20"),
            ([3.0], 0, "300"),
        ],
    )
    def test_two_digits_of_a_standard_error(self, stderr: list[float], places: int, text: str) -> None:
        assert decimals(np.array(stderr)) == places
        assert percent(stderr[0], places) == text

    def test_without_any_noise_two_decimals(self) -> None:
        assert decimals(np.zeros(3)) == 2

    def test_zero_has_no_sign(self) -> None:
        assert percent(-1e-9, 2) == "0.00"
