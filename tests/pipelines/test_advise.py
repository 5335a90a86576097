"""``uldp advise``: what it forecasts is what reports give, what it finds suffices, and nothing is missing from it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.inference.forecast import falling_shares
from uldp.mechanisms.protocol.decoder import FindingDecoder
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.advice.question import Question, keys_of_size, keys_of_spec
from uldp.pipelines.advice.ranking import rank, ranked_mechanisms
from uldp.pipelines.advice.text import advice_text
from uldp.pipelines.cli import cli
from uldp.schemas.specs.collection import CollectionSpec

EXAMPLES = Path(__file__).parents[2] / "examples"
TWO_HUNDRED = keys_of_size(200, 50)


def quiet(mechanism: str) -> None:
    """Show no progress."""


UTILITY_OPTIMIZED = ranked_mechanisms(utility_optimized=True)


def ask(epsilon: float | None, users: int | None, error: float | None) -> Question:
    return Question(TWO_HUNDRED, Path(), None, epsilon, users, error)


@pytest.mark.slow
def test_the_error_is_that_of_reports_and_the_first_has_the_least() -> None:
    # So many values that bit-flip has two designs.
    ranked, left_out = rank(Question(keys_of_size(80, 20), Path(), None, 2.0, 1000, None), quiet)
    assert not left_out
    assert ranked == sorted(ranked, key=lambda each: each.errors.l1)
    assert {each.mechanism for each in ranked} == {*ranked_mechanisms(utility_optimized=False), *UTILITY_OPTIMIZED}
    r, rng, windows = falling_shares(80), np.random.default_rng(3), 25
    for advice in ranked:
        protocol = build_protocol(CollectionSpec.parse(advice.spec))
        errors = []
        for _ in range(windows):
            symbols = protocol.encoding.encode([Held(rng.choice(80, 1000, p=r), np.full(1000, -1))], rng)
            cells = protocol.mechanism.statistic(protocol.mechanism.perturb(symbols, rng))
            errors.append(np.abs(protocol.decoder.tables(cells, 1000, "auto")[0].values - r).sum())
        z = (np.mean(errors) - advice.errors.l1) / (np.std(errors) * np.sqrt(1 / windows + 1 / 51))
        assert abs(z) < 3.5, advice.mechanism


@pytest.mark.nightly
@pytest.mark.parametrize(("epsilon", "users"), [(2.0, None), (None, 20_000)])
def test_an_answer_suffices_and_less_does_not(epsilon: float | None, users: int | None) -> None:
    ranked, _ = rank(ask(epsilon, users, 0.2), quiet)
    best = ranked[0]
    assert best.errors.l1 <= 0.2
    less = ask(best.epsilon / (1 if epsilon else 1.2), round(best.users / (1.2 if epsilon else 1)), None)
    again = {each.mechanism: each for each in rank(less, quiet)[0]}
    assert again[best.mechanism].errors.l1 > 0.2


def test_a_mechanism_that_cannot_be_built_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    # A space of points for so many values at this epsilon is too large, which its spec does not know.
    monkeypatch.setattr("uldp.pipelines.advice.ranking.ranked_mechanisms", lambda **_: ["pgr"])
    ranked, (left_out,) = rank(Question(keys_of_size(200_000, None), Path(), None, 4.0, 10, None), quiet)
    assert not ranked
    assert left_out.reason.startswith("200,000 values at epsilon 4 need more than the 8,388,608 vectors")


def test_a_budget_leaves_no_mechanism_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uldp.pipelines.advice.ranking.ranked_mechanisms", lambda **_: ["rr", "bit-flip"])
    keys = keys_of_size(5, None) | {"budget": {"epsilon": 4, "every": "30d"}}
    ranked, left_out = rank(Question(keys, Path(), None, 1.0, 1000, None), quiet)
    assert (len(ranked), left_out) == (2, [])


def test_bit_flip_has_as_many_bits_as_its_designs_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uldp.pipelines.advice.ranking.ranked_mechanisms", lambda **_: ["bit-flip"])
    for size, bits in ((40, 40), (65_536, 64), (65_537, 65), (100_000, 98)):
        ((advice,), _) = rank(Question(keys_of_size(size, None), Path(), None, 2.0, 1000, None), quiet)
        assert advice.spec["mechanism"]["bits"] == bits


def test_tags_leave_those_that_can_hide_values() -> None:
    keys, _, own = keys_of_spec(EXAMPLES / "manhattan" / "spec.yaml")
    question = Question(keys, EXAMPLES / "manhattan", EXAMPLES / "manhattan" / "truth.csv", 6.4, 100_000, None)
    ranked, left_out = rank(question, quiet)
    assert not left_out
    assert not own
    assert sorted(each.mechanism for each in ranked) == sorted(UTILITY_OPTIMIZED)
    assert ranked[0].errors.l1 < 0.1


def test_the_printed_spec_is_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli, ["advise", "--size", "12", "--sensitive", "4", "--epsilon", "2", "--users", "5000"]
    )
    assert result.exit_code == 0
    _, _, not_ranked = " ".join(result.output.split()).partition("not ranked: ")
    assert all(each in not_ranked for each in ("identity (no privacy)", "warner (rr of two values)"))
    pasted = tmp_path / "spec.yaml"
    pasted.write_text(result.output.split("# ", 1)[1].split("\n", 1)[1], encoding="utf-8")
    spec = CollectionSpec.load(pasted)
    assert spec.mechanism.name in UTILITY_OPTIMIZED
    assert yaml.safe_load(pasted.read_text(encoding="utf-8"))["sensitive"] == list(range(4))


@pytest.mark.parametrize(("epsilon", "error"), [(1.0, None), pytest.param(None, 0.3, marks=pytest.mark.nightly)])
def test_devices_that_keep_their_responses_keep_them(
    epsilon: float | None, error: float | None, tmp_path: Path
) -> None:
    written = tmp_path / "spec.yaml"
    written.write_text(
        "{collection: c, version: 1, domain: {size: 12}, sensitive: [1, 2, 5], window: {size: 1d},"
        " mechanism: {name: urr, epsilon: 1, lasting_epsilon: 1.5}}"
    )
    keys, lasting, _ = keys_of_spec(written)
    ranked, _ = rank(Question(keys, tmp_path, None, epsilon, 5000, error, lasting), quiet)
    without, _ = rank(Question(keys, tmp_path, None, epsilon, 5000, error), quiet)
    assert {each.spec["mechanism"]["lasting_epsilon"] for each in ranked} == {1.5}
    assert all(each.epsilon <= 1.5 for each in ranked)
    errors = {each.mechanism: each.errors for each in without if each.epsilon == epsilon}
    assert {each.mechanism: each.errors for each in ranked if each.epsilon == epsilon} == errors
    assert "lasting_epsilon" not in without[0].spec["mechanism"]


def test_a_budget_of_all_reports_below_that_of_one_is_refused() -> None:
    ranked, left_out = rank(Question(TWO_HUNDRED, Path(), None, 2.0, 5000, None, 1.0), quiet)
    assert not ranked
    assert all("lasting_epsilon" in each.reason for each in left_out)


def test_a_background_is_a_truth_in_which_nobody_hides(tmp_path: Path) -> None:
    shares = {0: 5, 3: 2, 17: 1}
    for name, header, row in (("background", "value,weight", "{},{}"), ("truth", "value,tag,weight", "{},,{}")):
        lines = [header, *(row.format(value, weight) for value, weight in shares.items())]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    spec = Question(TWO_HUNDRED, Path(), tmp_path / "background.csv", 2.0, 5000, None)
    same = Question(TWO_HUNDRED, Path(), tmp_path / "truth.csv", 2.0, 5000, None)
    urr = spec.spec({"name": "urr", "epsilon": 2.0}, plain=False)
    protocol = build_protocol(urr)
    assert spec.true_shares(urr, protocol).tolist() == same.true_shares(urr, protocol).tolist()
    assert spec.true_shares(urr, protocol)[[0, 3, 17]].tolist() == [5 / 8, 2 / 8, 1 / 8]


SETS: dict[str, Any] = {
    "collection": "c",
    "version": 1,
    "window": {"size": "1d"},
    "domain": {"set": {"of": {"size": 40}, "at_most": 3}},
}


def test_sets_are_ranked_by_the_error_of_the_shares_of_items() -> None:
    ranked, left_out = rank(Question(SETS, Path(), None, 1.0, 50_000, None), quiet)
    assert [each.mechanism for each in ranked] == ["set-ss", "set-olh"]
    assert not left_out
    for each in ranked:
        protocol = build_protocol(CollectionSpec.parse(each.spec))
        assert isinstance(protocol.decoder, SetDecoder)
        r = np.append(np.full(40, 1.5 / 40), [0.75, 0.5, 0.25])
        errors = protocol.decoder.stderr(r, 50_000)
        assert each.errors.half_width == pytest.approx(1.96 * errors.mean(), rel=0.05)
        assert each.errors.l2 == pytest.approx(math.sqrt((errors**2).sum()), rel=0.3)


def test_a_truth_of_sets_and_pairs_has_the_shares_of_what_devices_report(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("items,weight\n1;2,3\n1;2;3;4;5;6,1\n")
    question = Question(SETS, Path(), tmp_path / "truth.csv", 1.0, 1000, None)
    for sizes in ({}, {"sizes": 0.5}):
        spec = question.spec({"name": "set-ss", "epsilon": 1.0, **sizes}, plain=True)
        shares = question.true_shares(spec, build_protocol(spec))
        assert shares.shape == (43,)
        # A quarter of the users report three of six items; the others two, and a dummy.
        assert np.abs(shares[[0, 1, 2, 3, 40, 41, 42]] - [0, 0.875, 0.875, 0.125, 0.75, 0, 0]).max() < 0.01


def advised(folder: Path, spec: str, *options: str) -> dict[str, Any]:
    (folder / "spec.yaml").write_text(f"collection: c\nversion: 1\nwindow: {{size: 1d}}\n{spec}")
    result = CliRunner().invoke(cli, ["advise", str(folder / "spec.yaml"), *options])
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = yaml.safe_load(result.output.split("\n# ", 1)[1].split("\n", 1)[1])
    CollectionSpec.parse(printed)
    return printed


def test_a_mechanism_has_the_keys_of_the_spec_that_it_takes(tmp_path: Path) -> None:
    sets = (
        "domain: {set: {of: {size: 40}, at_most: 3}}\nmechanism: {name: set-olh, epsilon: 4, sizes: .1, buckets: 9}\n"
    )
    found = advised(tmp_path, sets, "--epsilon", "1", "--users", "1000")["mechanism"]
    assert found == {"name": "set-ss", "epsilon": 1.0, "sizes": 0.1}  # which has no buckets
    strings = (
        "domain: {strings: {longest: 12, alphabet: a-z}}\nmechanism: {name: prefixes, epsilon: 4, depth: 6, step: 2}\n"
    )
    found = advised(tmp_path, strings, "--epsilon", "2", "--users", "1000000")["mechanism"]
    assert found == {"name": "prefixes", "epsilon": 2.0, "depth": 6, "step": 2}


def test_users_who_report_sizes_do_not_report_items() -> None:
    (half, other), _ = rank(Question(SETS, Path(), None, 1.0, 50_000, None, own={"sizes": 0.5}), quiet)
    (whole, _), _ = rank(Question(SETS, Path(), None, 1.0, 25_000, None), quiet)
    assert (half.mechanism, other.mechanism) == ("set-ss", "set-olh")
    assert half.errors == whole.errors
    assert half.payload == whole.payload + 2
    assert half.kept == whole.kept == "links"
    strings = {**SETS, "domain": {"set": {"of": {"strings": {"longest": 9}}, "at_most": 2}}, "candidates": ["a"]}
    (half,), _ = rank(Question(strings, Path(), None, 1.0, 50_000, None, own={"sizes": 0.5}), quiet)
    (whole,), _ = rank(Question(strings, Path(), None, 1.0, 25_000, None), quiet)
    assert half.errors == whole.errors


def test_the_users_that_find_a_string_are_found(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "collection: c\nversion: 1\ndomain: {strings: {longest: 12, alphabet: a-z}}\n"
        "mechanism: {name: prefixes, epsilon: 4.0}\nwindow: {size: 1d}\n"
    )
    keys, _, _ = keys_of_spec(tmp_path / "spec.yaml")
    question = Question(keys, tmp_path, None, 2.0, None, 0.02)
    (advice,), left_out = rank(question, quiet)
    assert {each.mechanism for each in left_out} == {"bloom", "cohort-olh"}
    decoder = build_protocol(CollectionSpec.parse(advice.spec)).decoder
    assert isinstance(decoder, FindingDecoder)
    assert decoder.least_found(advice.users) <= 0.02 < decoder.least_found(round(0.95 * advice.users))
    text = advice_text(question, [advice], left_out)
    assert "found: half of the strings with this share are found" in text
    assert "truth:" not in text


def test_of_a_large_epsilon_that_has_too_many_cells_a_smaller_one_is_asked() -> None:
    keys = {**SETS, "domain": {"strings": {"longest": 12, "alphabet": "a-z"}}}
    (advice,), _ = rank(Question(keys, Path(), None, None, 1_000_000, 0.02), quiet)
    assert 0.5 < advice.epsilon < 5


_MANHATTAN = str(EXAMPLES / "manhattan")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([f"{_MANHATTAN}/zones.yaml", "--epsilon", "1", "--users", "10"], "the tag 'home' has some; compare"),
        ([f"{_MANHATTAN}/nested.yaml", "--epsilon", "1", "--users", "10"], "uldp advise does not simulate zones"),
        (["--size", "40", "--epsilon", "1"], "give two of --epsilon, --users and --error"),
        (["--size", "40", "--epsilon", "1", "--users", "10", "--error", "1"], "give two of"),
        (["--epsilon", "1", "--users", "10"], "give a SPEC, or --size"),
        (["--size", "40", "--epsilon", "nan", "--users", "10"], "error: --epsilon must be 1e-06 or more"),
        (["--size", "40", "--users", "10", "--error", "nan"], "error: --error nan is no distance; give one above 0"),
        (["--size", "8", "--users", "10", "--error", "0.001"], "are left out: no epsilon up to 20 gives"),
    ],
)
def test_a_wrong_question_is_one_clear_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from uldp.pipelines.cli import main

    monkeypatch.setattr("sys.argv", ["uldp", "advise", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code in {1, 2}
    assert message in capsys.readouterr().err


@pytest.mark.nightly
def test_slices_have_the_errors_of_all_users_and_stay_in_the_spec() -> None:
    keys = {**keys_of_size(10, None), "by": {"os": ["android", "ios"], "version": ["1", "2", "3"]}}
    whole = Question(keys_of_size(10, None), Path(), None, 1.0, 1000, None)
    alone, _ = rank(whole, quiet)
    sliced, left_out = rank(Question(keys, Path(), None, 1.0, 1000, None), quiet)
    assert not left_out
    assert [(each.mechanism, each.errors) for each in sliced] == [(each.mechanism, each.errors) for each in alone]
    assert all(CollectionSpec.parse(each.spec).by is not None for each in sliced)
    widths = {each.mechanism: each.payload for each in alone}
    assert all(each.payload >= widths[each.mechanism] for each in sliced)
