"""Each client in another language sends what its table says: by the vectors, by ``verify``, and as a fleet."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.clients.bad_tables import bad_tables
from tests.clients.commands import CLIENTS, run
from tests.clients.fleets import DEVICES, HELD, assert_counted_at_the_truth, messages, uldp, written
from tests.clients.tables import cases, write
from tests.pipelines.intake.posting import Collecting, post
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

each_client = pytest.mark.parametrize("client", CLIENTS)


@each_client
def test_a_client_follows_all_vectors(client: str, tmp_path: Path) -> None:
    write(tmp_path / "cases.jsonl")
    found = json.loads(run(client, "vectors", tmp_path / "cases.jsonl"))
    assert found["differ"] == []
    assert found["cases"] == len([*cases()])


@each_client
def test_a_client_follows_the_vectors_of_a_spec_of_ones_own(client: str, tmp_path: Path) -> None:
    spec, _ = written(tmp_path, HELD["record"][0] | {"budget": {"epsilon": 2, "every": "30d"}})
    (tmp_path / "vectors.jsonl").write_text(uldp("vectors", spec))
    assert json.loads(run(client, "vectors", tmp_path / "vectors.jsonl")) == {"cases": 1, "reports": 6, "differ": []}


@each_client
def test_a_client_refuses_wrong_tables_in_one_line(client: str) -> None:
    tables = list(bad_tables())
    lines = [{"text": bad.text, "device": bad.device} for bad in tables]
    errors = map(json.loads, run(client, "refuses", lines=lines).splitlines())
    said = {bad.what: error for bad, error in zip(tables, errors, strict=True)}
    assert [what for what, error in said.items() if error is None] == []
    # What is no JSON at all never comes to the client in TypeScript: JSON.parse refuses it.
    known = re.compile("the device table is wrong: .+|this client reads tables of format 1, not .+; update it|.*JSON.*")
    assert {what: error for what, error in said.items() if not known.fullmatch(error) or len(error) > 200} == {}


@pytest.mark.parametrize("client", [*CLIENTS, "c"])
@pytest.mark.parametrize("name", HELD)
def test_reports_follow_the_mechanism_and_keep_its_promise(client: str, name: str, tmp_path: Path) -> None:
    keys, holding, arguments = HELD[name]
    spec, _ = written(tmp_path, keys)
    stream, now = LocalStream.create(tmp_path / "stream"), time.time_ns() // 1_000_000
    stream.append([Message(each, now) for each in messages(client, tmp_path, [holding] * DEVICES)])
    stream.close()
    assert "p-value of all tests" in uldp("verify", "--spec", spec, *arguments, tmp_path / "stream")


@pytest.mark.parametrize("client", [*CLIENTS, "c"])
def test_a_fleet_is_counted_at_the_truth(client: str, tmp_path: Path) -> None:
    spec, table = written(tmp_path, HELD["urr"][0])
    held = np.random.default_rng(5).choice(3, DEVICES, p=[0.2, 0.5, 0.3])
    # Half of those who hold b hide it.
    holdings = [{"value": "abc"[z], "hidden": {"b": "home"} if z == 1 and i % 2 else {}} for i, z in enumerate(held)]
    with Collecting(spec, tmp_path / "posted") as collecting:
        if client == "c":  # a program brings its own function that posts
            with ThreadPoolExecutor(16) as pool:
                answers = pool.map(lambda each: post(collecting.port, each)[0], messages(client, tmp_path, holdings))
                taken = [*answers].count(202)
        else:
            taken = int(run(client, "fleet", table, f"http://127.0.0.1:{collecting.port}", lines=holdings))
    assert taken == DEVICES
    assert_counted_at_the_truth(spec, tmp_path, held, [bool(holding["hidden"]) for holding in holdings])


@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_two_jvms_that_are_killed_send_each_message_and_spend_the_budget(store: str) -> None:
    assert run("kotlin", "kills", store, "1000", "7").startswith("1000 reports: 1000.0 spent, ")
