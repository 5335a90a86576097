"""The command, and the example that its tests run."""

import sys
from collections.abc import Callable
from pathlib import Path

MANHATTAN = Path(__file__).parents[2] / "examples" / "manhattan"
SPEC, TRUTH = str(MANHATTAN / "spec.yaml"), str(MANHATTAN / "truth.csv")

ULDP = Path(sys.executable).with_name("uldp")

Run = Callable[..., tuple[int, str, str]]
