"""What a command changes in its own process, and what it shows of logs."""

import io
import logging
import signal
import sys
import threading
from collections.abc import Iterator

import click
import pytest

from uldp.pipelines import cli
from uldp.pipelines.commands.output import show_log
from uldp.pipelines.process import _stop_silently, silence_workers, watched_output


@pytest.fixture
def logs() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)
    logging.getLogger("PrismJobServer").disabled = False
    for each in [*logging.getLogger().filters]:
        logging.getLogger().removeFilter(each)


@pytest.mark.usefixtures("logs")
def test_who_stops_hears_of_it_and_of_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # so that it is there again afterwards
    with pytest.raises(KeyboardInterrupt):
        _stop_silently(signal.SIGINT, None)
    worker = threading.Thread(target=lambda: sys.stderr.write("Traceback"))
    worker.start()
    worker.join()
    logging.getLogger("apache_beam").error("its job ends")
    click.echo("error: stopped", err=True)
    assert capsys.readouterr().err == "error: stopped\n"


def test_a_character_that_a_stream_has_not_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a file to which Windows redirects what is printed."""
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding="cp1252", newline="\n"))
    with watched_output() as output:
        click.echo("caf\xe9 \u03b6")
        output.check()
    assert file.getvalue() == b"caf\xe9 \\u03b6\n"


@pytest.mark.usefixtures("logs")
def test_a_failure_of_a_job_is_said_once(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers, and the layers of Prism's runner, tell of it too; a worker does so until the process ends."""

    def fail(**_: object) -> None:
        silence_workers()
        logging.getLogger().error("bundle failed: Traceback")
        logging.getLogger("PrismJobServer").error("bundle failed: Traceback")
        logging.getLogger("uldp.transforms").error("kafka:b:1/t: no broker answers")
        raise RuntimeError("job failed: Traceback\n  ...\nuldp.schemas.errors.EndpointError: kafka:b:1/t: is gone")

    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(cli.cli, "main", fail)
    with pytest.raises(SystemExit):
        cli.main()
    worker = threading.Thread(target=lambda: sys.stderr.write("Traceback"))
    worker.start()
    worker.join()
    assert caplog.messages == ["kafka:b:1/t: no broker answers"]
    assert capsys.readouterr().err == "error: kafka:b:1/t: is gone\n"


def test_what_is_worth_a_line_of_a_log_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    show_log("uldp.shown", logging.WARNING)
    logging.getLogger("uldp.shown.module").warning("%s lost %d messages", "topic", 3)
    logging.getLogger("uldp.shown.module").debug("asked")
    logging.getLogger("uldp.hidden").debug("nothing")
    assert capsys.readouterr().err == "topic lost 3 messages\n"
