"""These tests start brokers and clusters, so they run only where the environment asks for them: ULDP_CLUSTER=1.

Each process of the tests has one broker of Kafka and one Flink cluster, which all of its tests share.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # who has not asked for these tests may have no extra, and pytest loads this file all the same
    from tests.cluster.flink import Flink
    from tests.cluster.kafka import KafkaBroker

ASKED = os.environ.get("ULDP_CLUSTER") == "1"
collect_ignore_glob = [] if ASKED else ["*.py"]

#: The files whose tests take the longest. These begin first, and each test goes to whichever process is free.
LONGEST = (
    "test_kafka_on_flink.py",
    "test_soak.py",
    "test_running.py",
    "test_monitoring.py",
    "test_upgrade.py",
    "test_without_engine.py",
    "test_image.py",
    "test_pubsub.py",
    "test_changing_topics.py",
    "test_prism.py",
)


#: Files whose tests share what takes a process of the tests a minute to make.
TOGETHER = {"test_without_engine.py": "image", "test_image.py": "image"}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests first, and keep the tests of each other file together, or of files that share something."""
    if not ASKED:
        return
    for item in items:
        if item.path.name in TOGETHER or item.path.name not in LONGEST:
            item.add_marker(pytest.mark.xdist_group(TOGETHER.get(item.path.name, str(item.path))))
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["KafkaBroker"]:
    from tests.cluster.kafka import KafkaBroker

    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture(scope="session")
def started_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Flink"]:
    from tests.cluster.flink import Flink

    with Flink(tmp_path_factory.mktemp("flink")) as started:
        yield started


@pytest.fixture
def flink(started_flink: "Flink") -> Iterator["Flink"]:
    """A cluster of two TaskManagers on which no job runs. Its workers have the environment of this process as it is."""
    started_flink.workers.kill()
    started_flink.workers.start()
    yield started_flink
    for job in started_flink.cluster.running_jobs():
        started_flink.cluster.cancel(job)
