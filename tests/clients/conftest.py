"""These tests need clients that are built, so they run only where the environment asks for them: ULDP_CLIENTS=1."""

import os

ASKED = os.environ.get("ULDP_CLIENTS") == "1"
collect_ignore_glob = (
    []
    if ASKED
    else [
        "test_c.py",
        "test_c_*.py",
        "test_clients.py",
        "test_kotlin.py",
        "test_readmes.py",
        "test_times.py",
        "test_typescript.py",
    ]
)
