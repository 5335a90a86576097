"""Some processes held to some cores: what a cluster with cores of its own would do, seen on a machine that has few.

Linux gives a control group so many microseconds of the processor in each period, over all cores together. Only who may
make control groups can do this: root, as a rule.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
#: The controller of the first version, where it is mounted. The second has all controllers in one tree.
_FIRST = _ROOT / "cpu"
_PERIOD = 100_000


class NotPermittedError(Exception):
    """This machine lets us hold no process to a share of its cores."""


@contextmanager
def held_to(cores: float, processes: Iterable[int]) -> Iterator[None]:
    """Hold processes, and all that they start from now on, to so many cores together.

    Raises:
        NotPermittedError: if this machine does not let us.
    """
    parent = _FIRST if _FIRST.exists() else _ROOT
    group = parent / f"uldp-{os.getpid()}"
    with ExitStack() as stack:
        try:
            group.mkdir()
            stack.callback(_dissolve, group)
            _limit(group, round(cores * _PERIOD))
            _move(processes, group)
        except OSError as error:
            raise NotPermittedError(str(error)) from error
        yield


def _dissolve(group: Path) -> None:
    _move(map(int, (group / "cgroup.procs").read_text().split()), group.parent)
    group.rmdir()


def _limit(group: Path, quota: int) -> None:
    if group.parent == _FIRST:
        (group / "cpu.cfs_period_us").write_text(f"{_PERIOD}")
        (group / "cpu.cfs_quota_us").write_text(f"{quota}")
    else:
        (group.parent / "cgroup.subtree_control").write_text("+cpu")
        (group / "cpu.max").write_text(f"{quota} {_PERIOD}")


def _move(processes: Iterable[int], group: Path) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            (group / "cgroup.procs").write_text(f"{process}")
