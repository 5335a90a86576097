"""How to install what only some need."""

import json
from importlib import metadata


def install(*extras: str, of: str = "uldp-stream") -> str:
    """Return the command that adds extras to what is installed of a distribution, from where it came.

    A name in an index that is not the project's own may be a stranger's. So what was installed from a clone or a file
    names that.

    >>> install("gcp", of="apache-beam")
    "pip install 'apache-beam[gcp]'"
    """
    try:
        origin = json.loads(metadata.distribution(of).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    source = ""
    if "url" in origin:  # PEP 610
        scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        source = f" @ {scheme}{origin['url']}"
    return f"pip install '{of}[{','.join(extras)}]{source}'"
