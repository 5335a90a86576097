"""How to install what only some need."""

import json
from importlib import metadata


def install(*extras: str, of: str = "uldp-stream") -> str:
    """Return the command that adds extras to what is installed of a distribution, from where it came.

    A name in an index that is not the project's own may be a stranger's. So what was installed from a clone or a file
    names that.

    >>> install("serve").startswith("pip install 'uldp-stream[serve]")
    True
    """
    try:
        origin = metadata.distribution(of).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        origin = None
    source = f" @ {json.loads(origin)['url']}" if origin else ""
    return f"pip install '{of}[{','.join(extras)}]{source}'"
