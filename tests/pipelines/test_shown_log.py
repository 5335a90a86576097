"""What a command shows of a log, although it hides that of Beam."""

import logging
from collections.abc import Iterator

import pytest

from uldp.pipelines.commands.output import show_log


@pytest.fixture
def package() -> Iterator[str]:
    name = "uldp.shown"
    yield name
    logger = logging.getLogger(name)
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


def test_what_is_worth_a_line_is_one(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_log(package, logging.WARNING)
    logging.getLogger(f"{package}.module").warning("%s lost %d messages", "topic", 3)
    logging.getLogger(f"{package}.module").debug("asked")
    logging.getLogger("uldp.hidden").debug("nothing")
    assert capsys.readouterr().err == "topic lost 3 messages\n"
