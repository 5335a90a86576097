"""A client of ``urr`` that follows the conformance vectors: docs/client/testing.md."""

import json
from importlib.resources import files
from math import exp

from uldp.schemas import Report


def follow() -> int:
    """Compare each report of the first case of ``urr``, draw by draw; return how many."""
    case = json.loads(files("uldp.schemas").joinpath("vectors", "urr.json").read_text(encoding="utf-8"))["cases"][0]
    sensitive, epsilon = sorted(case["spec"]["sensitive"]), case["spec"]["mechanism"]["epsilon"]
    noise = len(sensitive) / (len(sensitive) + exp(epsilon) - 1)
    reports = [(device["value"], report) for device in case["devices"] for report in device["reports"]]
    for value, report in reports:
        (_, first), (_, second) = report["draws"]
        payload = sensitive[second] if first < 2**53 * noise else value
        assert payload == report["payload"]
        sent = Report("c", 1, bytes.fromhex(report["report_id"]), report["event_time"], payload)
        assert sent.encode().hex() == report["message"]
    return len(reports)
