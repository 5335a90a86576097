"""Which tests run in one worker."""

from xdist.scheduler import LoadGroupScheduling


class OfFiles(LoadGroupScheduling):  # type: ignore[misc]  # xdist says no types
    """Give a worker all tests of a group, or all tests of a file that are in no group, and large ones first.

    What tests of a file share is then made once. ``LoadGroupScheduling`` gives each test without a group on its own,
    and counts the tests that a worker has yet to run among all that it ever had, after each test.
    """

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid, super()._split_scope(nodeid))


def unit_of(test: str, group: str) -> str:
    """Name what is run together.

    >>> unit_of("tests/test_wheel.py::test_a[b::c]@wheel", "wheel")
    'wheel'
    >>> unit_of("tests/test_audit.py::test_a[b::c]", "tests/test_audit.py::test_a[b::c]")
    'tests/test_audit.py'
    """
    return group if group != test else test.split("::", 1)[0]
