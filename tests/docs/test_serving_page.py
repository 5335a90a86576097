"""docs/serving.md: each of its commands does what the page says, at another port."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from tests.docs.test_documents import ROOT
from tests.pipelines.command import ULDP

SURVEY = """
collection: survey
version: 1
domain: {labels: [never, once, often, always]}
mechanism: {name: rr, epsilon: 1.0}
window: {size: 1h}
"""


def commands() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / "docs" / "serving.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@contextmanager
def served(command: str, folder: Path) -> Iterator[str]:
    """A server as the page starts it; yields the port."""
    arguments = [str(ULDP), *shlex.split(command)[1:], "--port", "0"]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("serving at"))
            yield line.rpartition(":")[2].partition("/")[0]
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        finally:
            process.kill()


@pytest.mark.slow
def test_each_command_does_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(SURVEY)
    (tmp_path / "truth.csv").write_text("value,tag,weight\nnever,,50\nonce,,30\noften,,15\nalways,,5\n")
    for arguments in (
        "simulate survey.yaml --truth truth.csv --users 3000 --to stream",
        "backfill --spec survey.yaml --from stream --to results",
    ):
        subprocess.run([ULDP, *arguments.split()], cwd=tmp_path, check=True, capture_output=True)
    first, *asked = commands()
    token = next(line for line in asked if line.startswith("python3"))
    second = next(line for line in asked if line.startswith("uldp serve"))
    assert first == "uldp serve results"
    subprocess.run(["bash", "-c", token.replace("python3", sys.executable)], cwd=tmp_path, check=True)
    for command, answers in ((first, asked[: asked.index(token)]), (second, asked[asked.index(second) + 1 :])):
        with served(command, tmp_path) as port:
            assert answers
            for answer in answers:
                assert answer.startswith("curl ")
                line = answer.replace("curl ", "curl --silent --fail --show-error ").replace(":8077/", f":{port}/")
                done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
                assert done.returncode == 0, (answer, done.stderr)
                assert ": [{" in done.stdout, (answer, done.stdout)
