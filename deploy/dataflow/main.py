"""What the launcher of a flex template runs: its parameters are the options of ``uldp stream``."""

import sys

from uldp.pipelines.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "stream")
    main()
