"""Two processes share the store of a device and are killed at random: each message comes, and the budget is exact."""

import pytest

from tests.clients.commands import run


@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_two_jvms_that_are_killed_send_each_message_and_spend_the_budget(store: str) -> None:
    assert run("kotlin", "kills", store, "1000", "7").startswith("1000 reports: 1000.0 spent, ")
