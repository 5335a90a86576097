"""Trials of what the Python Package Index gets, each in an environment of its own that holds nothing else."""

import re
import shlex
import shutil
import zipfile
from pathlib import Path

from tests.release.readme import README, first_spec
from tests.release.trial import Trial

#: Devices of the README's first spec, each of which reports once.
USERS = 20_000


def _contents(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file of a wheel by its name."""
    with zipfile.ZipFile(wheel) as packed:
        return {each.filename: each.CRC for each in packed.infolist()}


def sdist(trial: Trial) -> str:
    """Build a wheel of the source distribution, which has to hold what the other wheel holds, and install it."""
    source, wheel = trial.artefact("uldp_stream-*.tar.gz"), trial.artefact("*.whl")
    programs = trial.environment("builder", "twine")
    trial.run(programs / "twine", "check", "--strict", source, wheel)
    trial.run(programs / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "built", source)
    (built,) = (trial.folder / "built").iterdir()
    if _contents(built) != _contents(wheel):
        raise trial.fail(f"pip wheel {source.name}", f"the wheel holds other files than {wheel.name}")
    trial.expect("uldp, version ", trial.environment("empty", built) / "uldp", "--version")
    return "twine finds nothing; a wheel built of it holds what the wheel of the release holds, and installs"


def _follow_remedy(trial: Trial, programs: Path, *command: str) -> None:
    """Run a command that lacks an extra, and then the command by which its error tells how to install that."""
    said = trial.expect("install it: pip install ", programs / "uldp", *command, fails=True)
    (requirement,) = shlex.split(said.rpartition("pip install ")[2])
    trial.run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)


def wheel(trial: Trial) -> str:
    """Install the wheel alone; do what the README does with its first spec; and run the demo."""
    found = trial.artefact("*.whl")
    if not found.name.endswith("-py3-none-any.whl"):
        raise trial.fail(found.name, "the wheel is not for each Python on each machine: py3-none-any")
    place = trial.folder / "a folder with spaces"
    place.mkdir()
    programs = trial.environment("empty", shutil.copy(found, place))
    version = found.name.split("-")[1]
    trial.expect(f"uldp, version {version}", programs / "uldp", "--version")
    # The errors name the wheel that is installed; each of both commands needs more than the wheel alone.
    _follow_remedy(trial, programs, "demo", "--out", "demo")
    files, commands = first_spec(README.read_text(encoding="utf-8"))
    for name, text in files.items():
        (trial.folder / name).write_text(text, encoding="utf-8")
    printed = {}
    for line in commands:
        _, command, *arguments = shlex.split(line)
        printed[command] = trial.run(programs / "uldp", command, *arguments)
    counted = sum(int(n.replace(",", "")) for n in re.findall(r"^  n ([\d,]+) ", printed["show"], flags=re.MULTILINE))
    if counted != USERS:
        raise trial.fail("uldp show results", f"says that {counted} reports are counted, not {USERS}")
    trial.run(programs / "uldp", "demo", "--out", "demo", "--users", "20000", "--speed", "2000")
    for page in ("report.html", "demo/report.html"):
        if b"</html>" not in (trial.folder / page).read_bytes():
            raise trial.fail("uldp report", f"{page} is no whole page")
    return f"installed alone; the demo's error installs the extras; README's {', '.join(printed)}; demo"
