"""An audit that finds something fails; one that could not ask says so."""

import subprocess
from pathlib import Path

import pytest

AUDIT = Path(__file__).with_name("audit.sh")


def audit(says: str, status: int) -> tuple[int, str]:
    command = ["sh", "-c", 'printf "%s\\n" "$1" >&2; exit "$2"', "sh", says, str(status)]
    done = subprocess.run([AUDIT, *command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_nothing_found_passes() -> None:
    assert audit("No known vulnerabilities found", 0) == (0, "No known vulnerabilities found\n")


@pytest.mark.parametrize("says", ["h11 0.14.0 GHSA-vqfr-h8mv-ghfj 0.16.0", "ERROR: requests.exceptions are many"])
def test_what_is_found_fails(says: str) -> None:
    assert audit(says, 1) == (1, f"{says}\n")


def test_a_service_that_is_not_reached_is_said() -> None:
    status, said = audit("Traceback\nrequests.exceptions.ConnectionError: no such host", 1)
    assert (status, said.split(":")[0]) == (0, "LEFT OUT audit")


def test_no_program_is_no_audit() -> None:
    assert subprocess.run([AUDIT, "no-such-program"], capture_output=True, check=False).returncode == 127
