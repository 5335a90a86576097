"""Alerts and the dashboard: they ask for what is counted, and say what to do."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from tests.docs.test_documents import anchors
from uldp.transforms.metrics import NAMESPACE, CounterName

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
#: How Flink's reporter writes a counter of a step.
OURS = f"flink_taskmanager_job_task_operator_{NAMESPACE}_"
COUNTED = {OURS + name for name in get_args(CounterName)}
FLINKS = {
    "flink_jobmanager_Status_JVM_Memory_Heap_Max",
    "flink_jobmanager_Status_JVM_Memory_Heap_Used",
    "flink_jobmanager_job_lastCheckpointDuration",
    "flink_jobmanager_job_numRestarts",
    "flink_jobmanager_job_numberOfCompletedCheckpoints",
    "flink_jobmanager_job_numberOfFailedCheckpoints",
    "flink_jobmanager_job_uptime",
    "flink_taskmanager_Status_JVM_Memory_Heap_Max",
    "flink_taskmanager_Status_JVM_Memory_Heap_Used",
    "flink_taskmanager_job_task_operator_currentInputWatermark",
}


def read(name: str) -> Any:
    return yaml.safe_load((MONITORING / name).read_text(encoding="utf-8"))


ALERTS: list[dict[str, Any]] = [rule for group in read("alerts.yaml")["groups"] for rule in group["rules"]]
PANELS: list[dict[str, Any]] = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]
SHOWN = [target["expr"] for panel in PANELS for target in panel["targets"]]


def metrics(*expressions: str) -> set[str]:
    return {name for expression in expressions for name in re.findall(r"\bflink_\w+", expression)}


def test_what_is_asked_for_is_what_is_counted() -> None:
    asked = metrics(*SHOWN, *(alert["expr"] for alert in ALERTS))
    assert asked == FLINKS | COUNTED


def test_the_dashboard_shows_every_counter_and_what_alerts_are_raised_on() -> None:
    assert metrics(*SHOWN) >= COUNTED
    assert metrics(*(alert["expr"] for alert in ALERTS)) - metrics(*SHOWN) == {"flink_jobmanager_job_uptime"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("info", "warning", "critical")
    assert alert["annotations"].keys() == {"summary", "description", "runbook"}
    page, anchor = alert["annotations"]["runbook"].split("#")
    assert anchor in anchors(ROOT / page)


def test_every_alert_has_a_test_for_promtool() -> None:
    tests = (MONITORING / "alerts_test.yaml").read_text(encoding="utf-8")
    assert {alert["alert"] for alert in ALERTS} == set(re.findall(r'alertname="(\w+)"', tests))


def test_prometheus_reads_the_alerts() -> None:
    assert [file for file in read("prometheus.yaml")["rule_files"] if not (MONITORING / file).exists()] == []
    assert read("alerts_test.yaml")["rule_files"] == read("prometheus.yaml")["rule_files"]
