"""Beam's worker pool, which starts the Python workers of a TaskManager on the same machine, or in the same pod.

    python -m uldp.pipelines.jobs.pool --service_port=PORT

It takes the options of ``apache_beam.runners.worker.worker_pool_main``, which listens on all interfaces.
"""

import sys

from apache_beam.runners.worker import worker_pool_main

from uldp.pipelines.jobs.loopback import loopback_servers

if __name__ == "__main__":
    with loopback_servers():
        worker_pool_main.main(sys.argv[1:])
