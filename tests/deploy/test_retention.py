"""A bucket does not keep for ever what clients sent."""

from tests.deploy.test_kubernetes import named
from tests.deploy.test_topics import RESOURCES


def test_late_and_rejected_reports_of_the_declared_job_expire() -> None:
    folder = named("to").removeprefix("gs://BUCKET/")
    (rule,) = RESOURCES["google_storage_bucket", "results"]["lifecycle_rule"]
    (condition,), (action,) = rule["condition"], rule["action"]
    assert (condition["age"], action["type"]) == (30, "Delete")
    assert {f"{folder}/late/", f"{folder}/rejected/", f"{folder}/few/"} < set(condition["matches_prefix"])
    assert all(prefix.endswith(("/late/", "/rejected/", "/few/")) for prefix in condition["matches_prefix"])
