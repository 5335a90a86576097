"""The dashboard of estimates: uldp serve answers all that it asks, and what it draws are times and numbers."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

pytest.importorskip("starlette")
from tests.pipelines.command import SPEC, TRUTH, run
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.commands.serve import serve

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
DASHBOARD: Mapping[str, Any] = json.loads((MONITORING / "estimates.json").read_text(encoding="utf-8"))
PANELS: Mapping[str, Mapping[str, Any]] = {panel["title"]: panel for panel in DASHBOARD["panels"]}
VARIABLES: Sequence[Mapping[str, Any]] = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
#: The plugin turns what a column selects into this.
TYPES: Mapping[str, type | tuple[type, ...]] = {"string": (str, list), "number": (int, float), "timestamp": str}

Rows = list[dict[str, Any]]


def filled(text: str, values: Mapping[str, str]) -> str:
    """Fill in variables as Grafana does; one that it does not know would stay as it is."""
    return re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], text)


def asked(site: Serving, query: Mapping[str, Any], values: Mapping[str, str]) -> Rows:
    """Ask as the plugin does: the rows below the selector, and of each row the columns by their names."""
    options = query["url_options"]
    assert (options["method"], query["type"], query["source"], query["parser"]) == ("GET", "json", "url", "backend")
    parameters = [(each["key"], filled(each["value"], values)) for each in options["params"]]
    answer = site.get(f"{filled(query['url'], values)}?{urlencode(parameters)}")
    assert answer.status == 200, answer.text
    rows = answer.json()[query["root_selector"]]
    for row in rows:
        for column in query["columns"]:
            assert isinstance(row[column["selector"]], TYPES[column["type"]])
    return [{column["text"]: row[column["selector"]] for column in query["columns"]} for row in rows]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("dashboard")
    run("simulate", SPEC, "--truth", TRUTH, "--users", 2000, "--to", folder / "stream")
    run("backfill", "--spec", SPEC, "--from", folder / "stream", "--to", folder / "results")
    with Serving(folder / "results") as serving:
        yield serving


@pytest.fixture(scope="module")
def values(site: Serving) -> Mapping[str, str]:
    """The first value that each variable offers, in the order in which they need each other."""
    chosen = {"__from:date:iso": "2026-01-05T09:00:00.000Z"}
    for variable in VARIABLES:
        offered = asked(site, variable["query"]["infinityQuery"], chosen)
        assert all(set(each) == {"__text", "__value"} for each in offered)
        chosen[variable["name"]] = offered[0]["__value"]
    return chosen


def test_variables_offer_what_there_is(values: Mapping[str, str]) -> None:
    assert values["folder"] == "results"
    assert values["collection"] == "manhattan-checkins"
    assert (values["estimator"], values["label"]) == ("mle", "0")


@pytest.mark.parametrize("title", [title for title in PANELS if title != "Collections"])
def test_a_panel_over_time_gets_a_row_for_each_window(site: Serving, values: Mapping[str, str], title: str) -> None:
    (target,) = PANELS[title]["targets"]
    rows = asked(site, target, values)
    assert target["format"] == "timeseries"
    assert [datetime.fromisoformat(row["time"]).hour for row in rows] == [9, 10, 11]


def test_a_value_has_its_interval_as_a_band(site: Serving, values: Mapping[str, str]) -> None:
    panel = PANELS["${label}"]
    rows = asked(site, panel["targets"][0], values)
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)
    overrides = {each["matcher"]["options"]: each["properties"] for each in panel["fieldConfig"]["overrides"]}
    assert overrides.keys() == {"low", "high"}
    assert {"id": "custom.fillBelowTo", "value": "low"} in overrides["high"]
    assert panel["repeat"] in {variable["name"] for variable in VARIABLES if variable["multi"]}


def test_the_table_names_each_collection(site: Serving, values: Mapping[str, str]) -> None:
    (row,) = asked(site, PANELS["Collections"]["targets"][0], values)
    assert (row["collection"], row["windows"]) == ("manhattan-checkins", 3)


def test_the_data_source_is_where_the_server_is() -> None:
    (source,) = yaml.safe_load((MONITORING / "infinity.yaml").read_text(encoding="utf-8"))["datasources"]
    (port,) = (each.default for each in serve.params if each.name == "port")
    assert source["url"] == f"http://127.0.0.1:{port}"
    assert source["jsonData"]["allowedHosts"] == [source["url"]]
    types = {panel["datasource"]["type"] for panel in DASHBOARD["panels"]}
    assert types == {source["type"]}
