"""What ``uldp check`` says of devices that keep their response."""

from tests import build
from uldp.pipelines.results.text import spec_text


def test_both_budgets_and_the_correlation_are_shown() -> None:
    lines = spec_text(build.spec(mechanism={"name": "urr", "epsilon": 1.0, "lasting_epsilon": 3.0}), 1000).splitlines()
    assert lines[1] == "  mechanism   urr, epsilon 1 nats a report and 3 for two or more of one value, over 5 values"
    assert any(line.startswith("  memory ") and "correlated" in line for line in lines)


def test_other_specs_say_nothing_of_memory() -> None:
    text = spec_text(build.spec(), 1000)
    assert "epsilon 1 nats a report, over" in text
    assert "memory" not in text
