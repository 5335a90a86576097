#!/usr/bin/env bash
# Run the tests that compute with floats under each of some kernels of OpenBLAS: tests/kernels.sh PYTHON KERNEL...
#
# OpenBLAS picks the kernel of the processor, and the last digits of a result depend on it. A kernel that this processor
# cannot run is skipped: OpenBLAS runs another in its place, or crashes.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly tests=(tests/mechanisms tests/transforms/test_aggregate.py tests/pipelines/report/test_figures.py)
readonly in_effect='
import numpy, scipy.linalg, threadpoolctl
scipy.linalg.inv(numpy.eye(64) @ numpy.eye(64))
libraries = threadpoolctl.threadpool_info()
print(*{library["architecture"] for library in libraries if library["internal_api"] == "openblas"})
'

python=$1
shift
ran=0
for kernel in "$@"; do
  export OPENBLAS_CORETYPE=$kernel
  found=$("$python" -c "$in_effect") || found=nothing
  if [ "$found" = "$kernel" ]; then
    echo "kernel $kernel:"
    "$python" -m pytest -n auto -m "not slow" "${tests[@]}"
    ran=$((ran + 1))
  else
    echo "kernel $kernel: skipped; asked for it, OpenBLAS runs $found on this processor"
  fi
done
[ "$ran" -gt 0 ] || { echo "error: this processor runs none of these kernels; name one that it runs" >&2; exit 1; }
