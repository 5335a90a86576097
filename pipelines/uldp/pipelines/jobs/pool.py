"""Beam's worker pool, which starts the Python workers of a TaskManager on the same machine, or in the same pod.

    python -m uldp.pipelines.jobs.pool --service_port=PORT

It takes the options of ``apache_beam.runners.worker.worker_pool_main``, which listens on all interfaces, and starts
workers by the name ``python``. Where that is another Python, a worker ends at once, and its job waits for it for ever.
So this pool starts workers by the Python that it runs in, and answers when a worker has begun, or why it has not.
"""

import os
import subprocess
import sys
from typing import Any

from apache_beam.portability.api.org.apache.beam.model.fn_execution.v1.beam_fn_api_pb2 import StartWorkerResponse
from apache_beam.runners.worker import worker_pool_main

from uldp.pipelines.jobs.loopback import loopback_servers

#: A worker, which says by a byte that it has begun.
_WORKER = """
import os
from apache_beam.runners.worker.sdk_worker import SdkHarness
harness = SdkHarness({url!r}, worker_id={name!r}, state_cache_size={cache}, data_buffer_time_limit_ms={limit})
os.write({begun}, b"1")
os.close({begun})
harness.run()
"""


class Pool(worker_pool_main.BeamFnExternalWorkerPoolServicer):
    """A pool whose workers run in the Python of this process, each as a process of its own."""

    def StartWorker(self, start_worker_request: Any, unused_context: Any) -> Any:  # noqa: N802 (the name in the service)
        """Start a worker; the answer says why if it has not begun, and the job then fails with that."""
        if not self._use_process or self._container_executable:
            return super().StartWorker(start_worker_request, unused_context)
        name = start_worker_request.worker_id
        reader, writer = os.pipe()
        code = _WORKER.format(
            url=start_worker_request.control_endpoint.url,
            name=name,
            cache=self._state_cache_size,
            limit=self._data_buffer_time_limit_ms,
            begun=writer,
        )
        with os.fdopen(reader, "rb") as begun:
            try:
                worker = subprocess.Popen([sys.executable, "-c", code], pass_fds=[writer])  # noqa: S603 (our own code)
            except OSError as error:
                return _failed(f"{sys.executable}: {error.strerror}")
            finally:
                os.close(writer)
            self._worker_processes[name] = worker
            if begun.read(1):
                return StartWorkerResponse()
        self._worker_processes.pop(name, None)  # unless the runner has stopped it meanwhile
        return _failed(f"worker {name} ended with exit code {worker.wait()} before it began; its output says why")


def _failed(why: str) -> StartWorkerResponse:
    print(f"error: {why}", file=sys.stderr, flush=True)  # noqa: T201 (the log of the pool is its output)
    return StartWorkerResponse(error=f"the pool of Python workers: {why}")


if __name__ == "__main__":
    setattr(worker_pool_main, "BeamFnExternalWorkerPoolServicer", Pool)  # noqa: B010 (a class, to its checker)
    with loopback_servers():
        worker_pool_main.main(sys.argv[1:])
