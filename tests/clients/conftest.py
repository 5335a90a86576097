"""These tests need clients that are built, so they run only where the environment asks for them: ULDP_CLIENTS=1."""

import os

ASKED = os.environ.get("ULDP_CLIENTS") == "1"
_NAMES = ("c", "c_*", "clients", "readmes", "times", "typescript")
collect_ignore_glob = [] if ASKED else [f"test_{name}.py" for name in _NAMES]
